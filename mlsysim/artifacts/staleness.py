"""Which artifacts are stale, and why: content against the lock, never time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlsysim import files, paths
from mlsysim.artifacts import artifact_schema, scenario_schema
from mlsysim.artifacts.artifact_schema import VERSION
from mlsysim.artifacts.ingredients import INPUTS, Ingredients, ingredients, short
from mlsysim.artifacts.lock import Lock, faults, read_lock
from mlsysim.artifacts.schema_versions import other_schema
from mlsysim.canonical import digest, loads
from mlsysim.declarations.documents import Known, document, names
from mlsysim.errors import MlsysimError
from mlsysim.naming import stems

__all__ = [
    "EDITED",
    "MERGED",
    "Verdict",
    "housekeeping",
    "judge",
    "orphans",
    "stale",
    "stale_schemas",
    "verdicts",
]


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
    lines, made = lock.lines("scenario", name), short(digest(found))
    if not lines:
        return ["not in results/artifacts.lock"]
    reasons = []
    if made not in {line.made for line in lines}:
        reasons.append(f"artifact {_damage(found, len(lines) > 1)}")
    if made_from.digest in {line.ingredients for line in lines}:
        return reasons or ["artifact made on one branch, from what another one changed"]
    # Of several lines, as a merge can leave them, the one that made what is found says most.
    changed = max(lines, key=lambda line: (line.made == made, line)).changed(made_from)
    if INPUTS in changed or (not changed and _changed_inputs(name, found)):
        reasons.append("inputs changed" + _changed_inputs(name, found))
    if modules := [each for each in changed if each != INPUTS]:
        reasons.append("code changed: " + ", ".join(modules))
    return reasons or ["made from other ingredients"]


def _table_reasons(name: str, artifact: bytes) -> list[str]:
    """Why the table beside a good artifact is not the one that the artifact was made with.

    Its digest is looked for in the artifact, which is as `dumps` writes it: every build asks this
    of every artifact, and to parse them takes a third of the time.
    """
    data = files.read(paths.table(name))
    told = f'"digest": "{digest(data)}"' if data else '"digest": "'
    if (told.encode() in artifact) == bool(data):
        return []
    return [f"table {paths.shown(paths.table(name))} " + ("edited by hand" if data else "missing")]


def _damage(found: bytes, merged: bool) -> str:
    """What became of an artifact that no line certifies; of one made on two branches, a merge."""
    if not found:
        return "empty"
    if merged:
        return MERGED
    try:
        content = loads(found)
    except ValueError:
        return "truncated or unreadable"
    if isinstance(content, dict) and (other := other_schema(content.get("schema"), VERSION)):
        return other
    return EDITED


# What became of a file that no line certifies, as `status` tells it of products too.
EDITED = "edited by hand (its bytes are not those that were made)"
MERGED = "merged from two branches, which no build has made"


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


def orphans() -> list[str]:
    """Artifacts that no scenario makes any more, and parts of files that were never written whole.

    They are given as paths relative to the root.
    """
    known = set(stems("Scenarios"))
    folder = paths.results() / "scenarios"
    return sorted(
        paths.shown(path)
        for path in folder.glob("*.*")
        if (path.suffix in _MADE and path.stem not in known) or files.left_behind(path)
    )


# What lies beside artifacts and ends otherwise, such as an editor's swap file, is nobody's.
_MADE = (".json", ".csv")


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
