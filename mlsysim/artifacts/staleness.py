"""Which artifacts are stale, and why: content against the lock, never time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts import artifact_schema, scenario_schema
from mlsysim.artifacts.lock import Ingredients, Lock, faults, ingredients, read_lock
from mlsysim.canonical import digest, loads
from mlsysim.declarations.documents import Known, document, names
from mlsysim.errors import MlsysimError
from mlsysim.naming import stems

__all__ = ["Verdict", "housekeeping", "judge", "orphans", "stale", "stale_schemas", "verdicts"]


@dataclass(frozen=True)
class Verdict:
    """What is known of one artifact: fresh, or the reasons why not."""

    name: str
    reasons: tuple[str, ...] = ()

    @property
    def fresh(self) -> bool:
        """Whether the artifact is what its ingredients make."""
        return not self.reasons


def stale(known: Known | None = None) -> list[str]:
    """The scenarios whose artifact must be made (again): those that `verdicts` finds reasons for.

    Reasons take long to tell, and every build asks this. `known` is filled with what is read.
    """
    lock, codes = read_lock(), dict[str, Ingredients]()
    known = Known() if known is None else known
    found = []
    for name in names("Scenarios"):
        try:
            told = document(f"Scenarios.{name}", known)
            made_from = ingredients(told, codes.get(told.kind))
            codes[told.kind] = made_from
            artifact = files.read(paths.artifact(name))
        except MlsysimError:
            found.append(name)
            continue
        good = lock.certifies(name, made_from, digest(artifact))
        if not good or _table_reasons(name, artifact):
            found.append(name)
    return found


def verdicts() -> list[Verdict]:
    """A verdict on every scenario."""
    lock, known = read_lock(), Known()
    return [judge(name, lock, known) for name in names("Scenarios")]


def judge(name: str, lock: Lock, known: Known | None = None) -> Verdict:
    """Compare one scenario's ingredients and artifact with the lock.

    A document that cannot be read counts as stale: solving it then says what is wrong with it.
    """
    try:
        made_from = ingredients(document(f"Scenarios.{name}", known))
    except MlsysimError as error:
        return Verdict(name, (f"cannot be solved: {error}",))
    try:
        found = files.read(paths.artifact(name))
    except MlsysimError as error:
        return Verdict(name, (str(error),))
    if not found and not paths.artifact(name).is_file():
        return Verdict(name, ("artifact missing",))
    if lock.certifies(name, made_from, digest(found)):
        return Verdict(name, tuple(_table_reasons(name, found)))
    return Verdict(name, tuple(_reasons(name, lock, made_from, found)))


def _reasons(name: str, lock: Lock, made_from: Ingredients, found: bytes) -> list[str]:
    certified = lock.scenarios.get(name, set())
    if not certified:
        return ["not in results/artifacts.lock"]
    reasons = []
    if digest(found) not in {artifact for _, _, artifact in certified}:
        reasons.append(f"artifact {_damage(found)}")
    # Of several lines, as a merge can leave them, the one that made what is found says most.
    _inputs, code, _ = max(certified, key=lambda line: (line[2] == digest(found), line))
    if made_from.inputs not in {each for each, _, _ in certified}:
        reasons.append("inputs changed" + _changed_inputs(name, found))
    if made_from.code not in {each for _, each, _ in certified}:
        reasons.append(
            "code changed" + _changed_code(lock.code.get(code, {}), dict(made_from.parts))
        )
    return reasons or ["made from other ingredients"]


def _table_reasons(name: str, found: bytes) -> list[str]:
    """Why the table beside a good artifact is not the one that the artifact was made with."""
    told = loads(found).get("table", {})
    data = files.read(paths.table(name))
    if digest(data) == told.get("digest", digest(b"")):
        return []
    return [f"table {paths.shown(paths.table(name))} " + ("edited by hand" if data else "missing")]


def _damage(found: bytes) -> str:
    if not found:
        return "empty"
    try:
        loads(found)
    except ValueError:
        return "truncated or unreadable"
    return "edited by hand (its bytes are not those that were made)"


def _changed_inputs(name: str, found: bytes) -> str:
    """The inputs that differ from those the artifact prints, where that can be told."""
    from mlsysim.artifacts.making import inputs
    from mlsysim.artifacts.printing import could_be
    from mlsysim.engine.scenarios import scenario

    told = document(f"Scenarios.{name}")
    try:
        now: dict[str, Any] = inputs(scenario(told), told)
        then: dict[str, Any] = loads(found)["inputs"]
        title = loads(found).get("title")
    except (AttributeError, KeyError, MlsysimError, TypeError, ValueError):
        return ""
    changed = [
        f"{key}: {_shown(then.get(key), now.get(key))} -> {_shown(now.get(key), then.get(key))}"
        for key in sorted({*now, *then})
        if then.get(key) != now.get(key)
    ]
    if not could_be(told.title, str(title)):
        changed.insert(0, f"title: {told.title}")
    return ": " + "; ".join(changed) if changed else ""


def _shown(leaf: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """The part of an input in which it differs from another: its value, else its source."""
    if not leaf:
        return "none"
    value = f"{leaf['value']} {leaf['unit']}".strip()
    if other and value == f"{other['value']} {other['unit']}".strip():
        return f"source {leaf['source']!r}"
    return value


def _changed_code(then: dict[str, str], now: dict[str, str]) -> str:
    changed = sorted(part for part in {*then, *now} if then.get(part) != now.get(part))
    return ": " + ", ".join(changed) if then and changed else ""


def orphans() -> list[str]:
    """Artifacts that no scenario makes any more, as paths relative to the root."""
    known = set(stems("Scenarios"))
    folder = paths.results() / "scenarios"
    return sorted(
        paths.shown(path)
        for path in folder.glob("*.*")
        if path.suffix in _MADE and path.stem not in known
    )


# What lies beside artifacts and ends otherwise, such as an editor's swap file, is nobody's.
_MADE = (".json", ".csv", ".partial")


def housekeeping() -> bool:
    """Whether a build has something to put right that no stale scenario causes."""
    return any((stale_schemas(), orphans(), faults()))


def stale_schemas() -> list[str]:
    """The published schemas that are not those of this code, as paths relative to the root."""
    found = []
    if files.read(artifact_schema.path()) != artifact_schema.text().encode():
        found.append(paths.shown(artifact_schema.path()))
    if scenario_schema.is_stale():
        found.append(paths.shown(scenario_schema.path()))
    return found
