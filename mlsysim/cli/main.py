"""The command `mlsysim`: each rule of the Snakefile is one of its subcommands."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mlsysim.cli import diff
from mlsysim.errors import MlsysimError, for_terminal, printable
from mlsysim.files import unwritten
from mlsysim.runtime import interpreter, mistakes

if TYPE_CHECKING:
    from mlsysim.declarations.documents import Document

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit status 0, 1 (a finding or a user's mistake) or 2 (usage)."""
    options = parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no Greek
    run: Callable[[argparse.Namespace], int] = options.run
    interpreter.take_own_warnings()
    try:
        if run in _MAKING:
            interpreter.need_docstrings()
        status = run(options)
        if status and _WRONG:
            mistakes.note("\n".join(_WRONG))
        return status
    except MlsysimError as error:
        _tell(f"mlsysim: {error}", wrong=True)
        mistakes.note("\n".join(_WRONG))
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a folder that may not be read or written
        _tell(f"mlsysim: {unwritten(error)}", wrong=True)
        mistakes.note("\n".join(_WRONG))
        return 1


def parser() -> argparse.ArgumentParser:
    """The command line and its help."""
    top = argparse.ArgumentParser(
        prog="mlsysim",
        description="Named scenarios, solved once into artifacts that the chapters quote.",
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.set_defaults(run=run)
        made.add_argument("--json", action="store_true", help="print JSON instead of text")
        return made

    command("list", _list, "list the scenarios")
    show = command(
        "show",
        _show,
        "show a scenario or a registry entry, or one of its values with all that it rests on",
    )
    show.add_argument(
        "name", metavar="NAME[.FIELD]", help="DenseLLMReplica.state_per_gpu, Hardware.H100_SXM"
    )
    solve = command(
        "solve", _solve, "solve scenarios into results/scenarios and certify them in the lock"
    )
    solve.add_argument("names", metavar="NAME", nargs="*")
    solve.add_argument("--all", action="store_true", help="solve every scenario")
    solve.add_argument(
        "--compare",
        action="store_true",
        help="compare all values that follow others, not those alone that these rest on",
    )
    command(
        "settle",
        _settle,
        "remove artifacts that no scenario makes, and write the lock and the schemas anew",
    )
    command(
        "calibrate",
        _calibrate,
        "rewrite the values that differ from what they follow, in scenarios and registries",
    )
    command("status", _status, "say what is stale, and which ingredient changed")
    command(
        "verify",
        _verify,
        "solve again in memory and compare with the artifacts; nothing is written",
    )
    diff.add_arguments(
        command("diff", diff.diff, "say what a change moves on the page, why, and where")
    )
    execute = command(
        "execute",
        _execute,
        "execute chapters into build/executed and make their tables and figures",
    )
    execute.add_argument("chapters", metavar="CHAPTER", nargs="+")
    execute.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="execute N chapters at a time"
    )
    check = command(
        "check", _check, "look for numbers typed by hand, and for what the book leaves unused"
    )
    check.add_argument(
        "--history", action="store_true", help="also compare with artifacts of earlier revisions"
    )
    check.add_argument("--verbose", action="store_true", help="list what is for information")
    book = command("book", _book, "build the page from chapters, artifacts and executed notebooks")
    book.add_argument("--pdf", action="store_true", help="build build/pdf/book.pdf instead")
    book.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="read and write pages in N processes"
    )
    new = command(
        "new", _new, "write a scenario or a chapter that builds, and says what to fill in"
    )
    new.add_argument("what", choices=("scenario", "chapter"))
    new.add_argument("name", metavar="NAME", help="WideReplica, or NN_title for a chapter")
    new.add_argument(
        "--kind", default="", help="class of the scenario; its values are an example's"
    )
    new.add_argument("--base", default="", help="scenario that it varies; else the reference step")
    live = command("live", _live, "serve the page, and build it again whenever a source is saved")
    live.add_argument("--port", type=int, default=8000, help="0 takes one that is free")
    return top


_NAMED = 8  # scenarios that advice names one by one
_WRONG: list[str] = []  # what this command said was wrong


def _tell(text: str, *, wrong: bool = False) -> None:
    """Print a text; whatever file it comes from, a terminal obeys nothing in it.

    Every command prints through this, or as JSON. An error may have several lines, another text is
    one, whatever it holds.
    """
    if wrong:
        _WRONG.append(text)
    lines = text.split("\n") if wrong else [text]
    print(for_terminal(lines), file=sys.stderr if wrong else sys.stdout, flush=True)


def _print_json(content: Any) -> None:
    """The escapes of control characters are those of JSON: what is read back is what it was."""
    lines = json.dumps(content, indent=2, ensure_ascii=False).split("\n")
    print("\n".join(map(printable, lines)))


def _list(options: argparse.Namespace) -> int:
    from mlsysim.declarations.documents import Known, document, names

    found, known = [], Known()
    for name in names("Scenarios"):
        try:
            told = document(f"Scenarios.{name}", known)
            found.append({"name": name, "kind": told.kind, "title": _plain_title(told)})
        except MlsysimError as error:
            found.append({"name": name, "kind": "", "title": f"cannot be read: {error}"})
    if options.json:
        _print_json(found)
    else:
        width = max((len(each["name"]) for each in found), default=0)
        for each in found:
            _tell(f"{each['name']:{width}}  {each['title']}")
    return 0


def _plain_title(told: Document) -> str:
    """The title of a scenario; what it quotes is known once the scenario is solved."""
    from mlsysim.artifacts.printing import QUOTE
    from mlsysim.artifacts.reading import read

    if QUOTE.search(told.title):
        with suppress(MlsysimError):
            return read(told.name).title
    return QUOTE.sub("...", told.title)


def _show(options: argparse.Namespace) -> int:
    from mlsysim.cli import show, show_registry
    from mlsysim.errors import UnknownName
    from mlsysim.naming import meant, misnamed, names, unknown

    name, _, key = options.name.removeprefix("Scenarios.").partition(".")
    if name in show_registry.COLLECTIONS:
        kind: Any = show_registry
    elif name in names("Scenarios"):
        kind = show
    elif place := show_registry.place_of(name):
        full = f"{place}.{key}".rstrip(".")
        raise UnknownName(f"{name!r} is no scenario; did you mean {full!r}?")
    elif f"scenarios/{name}.toml" in misnamed():
        raise unknown("Scenarios", name)
    else:
        known = [*names("Scenarios"), *show_registry.COLLECTIONS]
        raise UnknownName(f"{name!r} is no scenario or registry; {meant('Scenarios', name, known)}")
    if options.json:
        _print_json(kind.as_data(name, key))
    else:
        print(kind.as_text(name, key))  # escaped line by line
    return 0


def _chosen(options: argparse.Namespace) -> list[str]:
    """The scenarios to solve: those named, or all. An unknown name is refused before any work."""
    from mlsysim.errors import InputError
    from mlsysim.naming import names, unknown

    known = names("Scenarios")
    if options.all == bool(options.names):
        raise InputError("solve what? name scenarios, or say --all; `mlsysim list` lists them")
    for name in options.names:
        if name not in known:
            raise unknown("Scenarios", name)
    return list(dict.fromkeys(options.names)) or known


def _solve(options: argparse.Namespace) -> int:
    return _solved(_chosen(options), options)


def _settle(options: argparse.Namespace) -> int:
    return _solved([], options)


def _solved(names: list[str], options: argparse.Namespace) -> int:
    """Solve scenarios, and what every solve does beside, which is all that no name asks for."""
    from mlsysim.building.solving import Solved, solve
    from mlsysim.runtime import turns

    errors, compare = list[str](), "compare" in options and options.compare

    def report(done: Solved) -> None:
        if done.error:
            errors.append(done.error)
            said = f"{done.name}: {done.error}" if done.name else done.error
            _tell(f"mlsysim: {said}", wrong=True)
        elif not options.json and done.removed:
            _tell(f"removed {done.name}, which no scenario makes")
        elif not options.json:
            what = "changed" if done.changed else "unchanged"
            _tell(f"solved {done.name} -> results/scenarios/{done.name}.json ({what})")
        if done.unfit:
            _tell(f"mlsysim: {done.name} {done.unfit}", wrong=True)

    with turns.job():
        done = solve(names, report, compare=compare)
    if options.json:
        _print_json([{"name": d.name, "changed": d.changed, "error": d.error} for d in done])
    return int(bool(errors))


def _calibrate(options: argparse.Namespace) -> int:
    from mlsysim.calibration.calibrating import calibrate

    done = calibrate()
    wrong = [each for each in done if each.wrong]
    if options.json:
        _print_json([vars(each) for each in done])
        return int(bool(wrong))
    for each in done:
        place = f"{each.file}:{each.line}: {each.key}"
        if each.wrong:
            _tell(f"mlsysim: {place}: {each.wrong}", wrong=True)
        else:
            _tell(f"{place}: {each.old} -> {each.new}")
    moved = len(done) - len(wrong)
    if moved:
        _tell(f"rewrote {_count(moved, 'value')}; run: make")
    elif not wrong:
        _tell("every value is what it follows")
    return int(bool(wrong))


def _status(options: argparse.Namespace) -> int:
    from mlsysim.building import status

    findings = status.status()
    if options.json:
        _print_json(findings)
        return int(bool(findings))
    for finding in findings:
        _tell(f"stale: {finding['what']}")
        for reason in finding["reasons"]:
            _tell(f"    {reason}")
    other = any(finding["what"] == status.ENVIRONMENT for finding in findings)
    run = "run: make" if other else "run: snakemake all"
    _tell(run if findings else "everything is fresh")
    return int(bool(findings))


def _verify(options: argparse.Namespace) -> int:
    from mlsysim.artifacts import staleness
    from mlsysim.building import certificates
    from mlsysim.building.solving import Verified, verify
    from mlsysim.calibration import agreement
    from mlsysim.declarations.documents import names
    from mlsysim.runtime import environment

    def report(done: Verified) -> None:
        if not options.json:
            _tell(f"{done.verdict}: {done.name}" + (f" ({done.detail})" if done.detail else ""))

    done = verify(names("Scenarios"), report)
    findings = [{"name": d.name, "verdict": d.verdict, "detail": d.detail} for d in done]
    findings += [
        {"name": path, "verdict": "orphan", "detail": "no scenario makes it"}
        for path in staleness.orphans()
    ]
    findings += [
        {"name": path, "verdict": "different", "detail": ""} for path in staleness.stale_schemas()
    ]
    products = [
        {"name": path, "verdict": "different", "detail": "; ".join(reasons)}
        for path, reasons in certificates.edited().items()
    ]
    findings += products
    differing = [
        {"name": each.follower.name, "verdict": "different", "detail": str(each)}
        for each in agreement.differences()
    ]
    findings += differing
    if options.json:
        _print_json(findings)
    else:
        for finding in findings[len(done) :]:
            more = f" ({finding['detail']})" if finding["detail"] else ""
            _tell(f"{finding['verdict']}: {finding['name']}{more}")
    wrong = [finding for finding in findings if finding["verdict"] != "identical"]
    mendable = [finding for finding in wrong if finding["verdict"] != "error"]
    if other := environment.differences() if wrong else []:
        _tell(f"mlsysim: {'; '.join(other[:3])}; run: make", wrong=True)
    elif differing:
        _tell("mlsysim: make values what they follow with: mlsysim calibrate", wrong=True)
    elif mendable and not options.json:
        chosen = [f["name"] for f in mendable if f in findings[: len(done)]]
        named = " ".join(chosen) if len(chosen) <= _NAMED else "--all"
        others = len(mendable) - len(chosen) - len(products)
        # A build goes by the lock, which may certify what is different here.
        steps = [f"mlsysim solve {'--all' if others else named}"] * bool(chosen or others)
        steps += ["snakemake all"] * bool(products)
        _tell(f"mlsysim: make them again with: {' && '.join(steps)}", wrong=True)
    return int(bool(wrong))


def _execute(options: argparse.Namespace) -> int:
    from mlsysim.book.source import cells
    from mlsysim.building import records
    from mlsysim.errors import UnknownName, nearest
    from mlsysim.runtime import turns

    known = cells.chapters()
    for chapter in options.chapters:
        if chapter not in known:
            raise UnknownName(f"{chapter!r} is no chapter; {nearest(chapter, known)}")
    done: list[dict[str, Any]] = []
    with turns.job():
        for chapter, made in records.execute(options.chapters, options.jobs):
            error = str(made) if isinstance(made, MlsysimError) else ""
            products = made if isinstance(made, list) else []
            changed = [{"path": path, "what": what} for path, what in products if what != "same"]
            executed = isinstance(made, list)
            done.append(
                {"chapter": chapter, "executed": executed, "changed": changed, "error": error}
            )
            if error:
                _tell(f"mlsysim: {error}", wrong=True)
            elif not options.json:
                _tell(f"{'executed' if executed else 'fresh already:'} {chapter}")
                for each in changed:
                    _tell(f"    {each['what']}: {each['path']}")
    if options.json:
        _print_json(done)
    return int(any(each["error"] for each in done))


def _check(options: argparse.Namespace) -> int:
    from mlsysim.book.check.checking import check

    found, remark = check(history=options.history)
    wrong = [finding for finding in found if not finding.information]
    if options.json:
        _print_json({"findings": [vars(each) for each in found], "history": remark})
        return int(bool(wrong))
    for finding in found if options.verbose else wrong:
        if finding.rule != "unlooked":  # the last line says it
            _tell(str(finding))
    if remark:
        _tell(f"history: {remark}")
    unread, unquoted = (sum(each.rule == rule for each in found) for rule in ("unread", "unquoted"))
    unlooked = [each.message for each in found if each.rule == "unlooked"]
    _tell(
        f"{_count(len(wrong), 'finding')}; "
        + (
            unlooked[0]
            if unlooked
            else f"for information: {_count(unread, 'artifact')} that no chapter reads, "
            f"{_count(unquoted, 'output')} that nobody quotes (--verbose lists them)"
        )
    )
    return int(bool(wrong))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _book(options: argparse.Namespace) -> int:
    from mlsysim.book.check.checking import check
    from mlsysim.book.pages.page_sources import read_once
    from mlsysim.book.site import html_book
    from mlsysim.building import records
    from mlsysim.declarations import drafts
    from mlsysim.library_hooks.python_processes import without_collector
    from mlsysim.runtime import environment, turns

    if options.pdf:
        from mlsysim import paths
        from mlsysim.book.site import printed_book

        with turns.job():
            made = paths.shown(printed_book.build())
        _print_json({"pdf": made}) if options.json else _tell(f"built {made}")
        return 0
    environment.check()
    with turns.job(), without_collector():
        html_book.remove_left_behind()
        key = records.page_key()
        if records.page_is_torn():
            html_book.forget()
        with read_once():
            html_book.build(options.jobs)
            findings = check()[0]
        records.record_page(key)
    if options.json:
        _print_json({"page": "build/book/index.html", "drafts": drafts.drafts()})
    else:
        _tell("built build/book/index.html")
        if remark := drafts.remark():
            _tell(remark)
        found = sum(not each.information for each in findings)
        _tell(f"mlsysim check: {_count(found, 'finding')}" + ("" if found else ", as it should be"))
    return 0


def _new(options: argparse.Namespace) -> int:
    from mlsysim.cli import new
    from mlsysim.errors import InputError
    from mlsysim.paths import shown

    if options.what == "chapter":
        if options.kind or options.base:
            raise InputError("--kind and --base are for scenarios")
        written = shown(new.new_chapter(options.name))
        also = " and its line in chapters/index.md"
    else:
        written = shown(new.new_scenario(options.name, options.kind, options.base))
        also = ""
    if options.json:
        _print_json({"written": written})
    else:
        _tell(f"wrote {written}{also}; it builds as it is: snakemake all")
        _tell("TODO marks what to fill in; with one it is a draft, which is not published")
    return 0


def _live(options: argparse.Namespace) -> int:
    from mlsysim.cli import live

    live.run(options.port)
    return 0


# What writes or compares artifacts and pages.
_MAKING = (_solve, _settle, _verify, _execute, _book, _live)
