"""Solving: from scenario files to artifacts on disk, and the check that both still agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mlsysim import files, paths
from mlsysim.artifacts import artifact_schema, scenario_schema, staleness
from mlsysim.artifacts.code import check_unedited, remember
from mlsysim.artifacts.ingredients import Ingredients, ingredients
from mlsysim.artifacts.lock import Certificate, certify, gather
from mlsysim.artifacts.making import artifact_texts
from mlsysim.artifacts.staleness import orphans
from mlsysim.building import certificates
from mlsysim.calibration.agreement import agree
from mlsysim.calibration.differences import message, resting
from mlsysim.calibration.following import Following
from mlsysim.calibration.settling import findings
from mlsysim.canonical import digest, loads
from mlsysim.declarations.documents import Document, document
from mlsysim.engine.scenarios import scenario
from mlsysim.errors import InputError, MlsysimError
from mlsysim.runtime import environment, turns

__all__ = ["Solved", "Verified", "solve", "verify"]


@dataclass(frozen=True)
class Solved:
    """What became of a scenario: its artifact changed, stayed, or the error that stopped it.

    `unfit` says why a scenario that was solved does not fit its hardware; `removed` marks a file
    that no scenario makes any more.
    """

    name: str
    changed: bool = False
    error: str = ""
    unfit: str = ""
    removed: bool = False


@dataclass(frozen=True)
class Verified:
    """An artifact against its scenario solved again: identical, same as printed or different."""

    name: str
    verdict: str
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether the artifact on disk is, byte for byte, what is made."""
        return self.verdict == "identical"


@dataclass(frozen=True)
class _Made:
    """An artifact before it is written: its ingredients, its text and that of its table."""

    made_from: Ingredients
    text: str
    table: str

    def differs(self, name: str) -> bool:
        """Whether the files on disk are other ones."""
        found = [files.read(path) for path in (paths.artifact(name), paths.table(name))]
        return found != [self.text.encode(), self.table.encode()]

    def write(self, name: str) -> None:
        """Put the files in place."""
        files.write(paths.artifact(name), self.text)
        if self.table:
            files.write(paths.table(name), self.table)
        else:
            paths.table(name).unlink(missing_ok=True)


def solve(
    names: Iterable[str],
    report: Callable[[Solved], None] = lambda _: None,
    *,
    compare: bool = False,
) -> list[Solved]:
    """Solve each scenario; then write the artifacts and certify them together in the lock.

    A scenario that cannot be solved keeps its old artifact and does not stop the others. One that
    rests on a value which is not what it follows is refused; `compare` looks at every such value,
    whether one of these scenarios rests on it or not. All such values are reported first, as what
    became of a scenario without a name. Raises MlsysimError if a library is another than is pinned,
    or code was edited meanwhile; nothing is written then.

    The rest is put in order beside: schemas, what no scenario makes, lines of the lock that a merge
    left. Of the jobs that share a build on a cluster one does that, which is given no names.
    """
    names, done, made = list(names), list[Solved](), dict[str, _Made]()
    begun = {name: _begin(name) for name in names}
    environment.check(
        library
        for each in begun.values()
        if not isinstance(each, MlsysimError)
        for library in each[1].libraries
    )
    following = Following(names=None if compare else names)
    differing = findings(following)
    if differing:
        report(Solved("", error=message(differing)))
    for name, each in begun.items():
        try:
            if isinstance(each, MlsysimError):
                raise each
            told, made_from = each
            if wrong := resting(told, differing):
                raise InputError(f"not solved, because it rests on {wrong[0].follower.name}")
            made_scenario = scenario(told)
            text, table = artifact_texts(made_scenario, told)
        except MlsysimError as error:
            done.append(Solved(name, error=str(error)))
            report(done[-1])
        else:
            made[name] = _Made(made_from, text, table)
            unfit = "" if made_scenario.feasible else made_scenario.feasibility
            done.append(Solved(name, changed=made[name].differs(name), unfit=unfit))
    settles = not (names and turns.elsewhere())
    _publish(made, settles)
    for solved in done:
        if not solved.error:
            report(solved)
    if compare and not differing and {*following.origins} <= {*made}:
        agree(following)
    for path in orphans() if settles else ():
        (paths.root() / path).unlink(missing_ok=True)  # another process of the build may see it too
        done.append(Solved(path, changed=True, removed=True))
        report(done[-1])
    return done


def _publish(made: Mapping[str, _Made], settles: bool) -> None:
    """Write artifacts and certify them; with `settles` schemas too, and the lock put in order.

    Raises MlsysimError if code was edited.
    """
    code = [part for ready in made.values() for part in ready.made_from.modules]
    editors = ""
    if settles and scenario_schema.is_stale():
        code += scenario_schema.made_from().items()
        editors = scenario_schema.text()
    check_unedited(code)
    for name, ready in made.items():
        ready.write(name)
    if settles:
        files.write(artifact_schema.path(), artifact_schema.text())
    if editors:
        files.write(scenario_schema.path(), editors)
    certify(
        Certificate("scenario", name, ready.made_from, digest(ready.text))
        for name, ready in made.items()
    )
    if settles:
        certificates.settle()
        remember()
    if settles and turns.elsewhere():
        gather(lambda: not staleness.stale())


def _begin(name: str) -> tuple[Document, Ingredients] | MlsysimError:
    """What is known of a scenario before it is solved, or why it cannot be."""
    try:
        told = document(f"Scenarios.{name}")
        return told, ingredients(told)
    except MlsysimError as error:
        return error


def verify(
    names: Iterable[str], report: Callable[[Verified], None] = lambda _: None
) -> list[Verified]:
    """Solve each scenario in memory and compare with its artifact on disk. Nothing is written.

    Raises MlsysimError if code was edited meanwhile.
    """
    done = []
    code: set[tuple[str, str]] = set()
    for name in names:
        done.append(_verify(name, code))
        report(done[-1])
    check_unedited(code)
    return done


def _verify(name: str, code: set[tuple[str, str]]) -> Verified:
    """One verdict; the modules that it rests on are added to `code`."""
    try:
        told = document(f"Scenarios.{name}")
        code |= {*ingredients(told).modules}
        made, table = artifact_texts(scenario(told), told)
    except MlsysimError as error:
        return Verified(name, "error", str(error))
    if not paths.artifact(name).is_file():
        return Verified(name, "missing")
    try:
        found = files.read(paths.artifact(name))
    except MlsysimError as error:
        return Verified(name, "error", str(error))
    if found == made.encode():
        if table and files.read(paths.table(name)) != table.encode():
            return Verified(name, "different", paths.shown(paths.table(name)))
        return Verified(name, "identical")
    try:
        then, now = loads(found), loads(made)
    except ValueError:
        return Verified(name, "different", "not readable JSON")
    changed = _changed(then, now)
    values = [key for key in changed if key.endswith(".value")]
    if then == now or not changed:
        return Verified(name, "same as printed", "the same content, laid out otherwise")
    shown = ", ".join((values or changed)[:6]) + (" ..." if len(values or changed) > 6 else "")
    return Verified(name, "different", shown)


def _changed(then: object, now: object, prefix: str = "") -> list[str]:
    """The dotted keys under which two JSON values differ."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            found
            for key in (*now, *(key for key in then if key not in now))
            for found in _changed(then.get(key), now.get(key), f"{prefix}.{key}" if prefix else key)
        ]
    return [] if then == now else [prefix]
