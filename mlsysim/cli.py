"""The command `mlsysim`: each rule of the Snakefile is one of its subcommands."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mlsysim.errors import MlsysimError

__all__ = ["main", "parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; exit status 0, 1 (a finding or a user's mistake) or 2 (usage)."""
    options = parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no Greek
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except MlsysimError as error:
        print(f"mlsysim: {error}", file=sys.stderr)
        return 1
    except PermissionError as error:
        print(f"mlsysim: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    command("status", _status, "say what is stale, and which ingredient changed")
    command(
        "verify",
        _verify,
        "solve again in memory and compare with the artifacts; nothing is written",
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


def _print_json(content: Any) -> None:
    print(json.dumps(content, indent=2, ensure_ascii=False))


def _list(options: argparse.Namespace) -> int:
    from mlsysim.documents import document, names

    found = []
    for name in names("Scenarios"):
        try:
            told = document(f"Scenarios.{name}")
            found.append({"name": name, "kind": told.kind, "title": told.title})
        except MlsysimError as error:
            found.append({"name": name, "kind": "", "title": f"cannot be read: {error}"})
    if options.json:
        _print_json(found)
    else:
        width = max((len(each["name"]) for each in found), default=0)
        for each in found:
            print(f"{each['name']:{width}}  {each['title']}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from mlsysim import showing, showing_registry
    from mlsysim.documents import names
    from mlsysim.errors import UnknownName, nearest

    name, _, key = options.name.removeprefix("Scenarios.").partition(".")
    if name in showing_registry.COLLECTIONS:
        kind: Any = showing_registry
    elif name in names("Scenarios"):
        kind = showing
    elif place := showing_registry.place_of(name):
        meant = f"{place}.{key}".rstrip(".")
        raise UnknownName(f"{name!r} is no scenario; did you mean {meant!r}?")
    else:
        known = [*names("Scenarios"), *showing_registry.COLLECTIONS]
        raise UnknownName(f"{name[:80]!r} is no scenario or registry; {nearest(name, known)}")
    if options.json:
        _print_json(kind.as_data(name, key))
    else:
        print(kind.as_text(name, key))
    return 0


def _chosen(options: argparse.Namespace) -> list[str]:
    """The scenarios to solve: those named, or all. An unknown name is refused before any work."""
    from mlsysim.documents import names
    from mlsysim.errors import InputError, UnknownName, nearest

    known = names("Scenarios")
    if options.all == bool(options.names):
        raise InputError("solve what? name scenarios, or say --all; `mlsysim list` lists them")
    for name in options.names:
        if name not in known:
            raise UnknownName(f"{name!r} is no scenario; {nearest(name, known)}")
    return list(dict.fromkeys(options.names)) or known


def _solve(options: argparse.Namespace) -> int:
    from mlsysim import turns
    from mlsysim.artifacts.solving import Solved, solve

    names = _chosen(options)

    def report(done: Solved) -> None:
        if done.error:
            print(f"mlsysim: {done.name}: {done.error}", file=sys.stderr, flush=True)
        elif not options.json and done.removed:
            print(f"removed {done.name}, which no scenario makes", flush=True)
        elif not options.json:
            what = "changed" if done.changed else "unchanged"
            print(f"solved {done.name} -> results/scenarios/{done.name}.json ({what})", flush=True)
        if done.unfit:
            print(f"mlsysim: {done.name} {done.unfit}", file=sys.stderr, flush=True)

    with turns.job():
        done = solve(names, report)
    if options.json:
        _print_json([{"name": d.name, "changed": d.changed, "error": d.error} for d in done])
    return int(any(each.error for each in done))


def _status(options: argparse.Namespace) -> int:
    from mlsysim import building

    findings = building.status()
    if options.json:
        _print_json(findings)
        return int(bool(findings))
    for finding in findings:
        print(f"stale: {finding['what']}")
        for reason in finding["reasons"]:
            print(f"    {reason}")
    other = any(finding["what"] == building.ENVIRONMENT for finding in findings)
    run = "run: make" if other else "run: snakemake all"
    print(run if findings else "everything is fresh")
    return int(bool(findings))


def _verify(options: argparse.Namespace) -> int:
    from mlsysim import environment
    from mlsysim.artifacts import staleness
    from mlsysim.artifacts.solving import Verified, verify
    from mlsysim.documents import names

    def report(done: Verified) -> None:
        if not options.json:
            print(
                f"{done.verdict}: {done.name}" + (f" ({done.detail})" if done.detail else ""),
                flush=True,
            )

    done = verify(names("Scenarios"), report)
    findings = [{"name": d.name, "verdict": d.verdict, "detail": d.detail} for d in done]
    findings += [
        {"name": path, "verdict": "orphan", "detail": "no scenario makes it"}
        for path in staleness.orphans()
    ]
    findings += [
        {"name": path, "verdict": "different", "detail": ""} for path in staleness.stale_schemas()
    ]
    if options.json:
        _print_json(findings)
    else:
        for finding in findings[len(done) :]:
            print(f"{finding['verdict']}: {finding['name']}")
    wrong = [finding for finding in findings if finding["verdict"] != "identical"]
    mendable = [finding for finding in wrong if finding["verdict"] != "error"]
    if other := environment.differences() if wrong else []:
        print(f"mlsysim: {'; '.join(other[:3])}; run: make", file=sys.stderr)
    elif mendable and not options.json:
        chosen = [f["name"] for f in mendable if f in findings[: len(done)]]
        named = " ".join(chosen) if len(chosen) == len(mendable) <= _NAMED else "--all"
        # A build goes by the lock, which may certify what is different here.
        print(f"mlsysim: make them again with: mlsysim solve {named}", file=sys.stderr)
    return int(bool(wrong))


def _execute(options: argparse.Namespace) -> int:
    from mlsysim import building, turns
    from mlsysim.book import cells
    from mlsysim.errors import UnknownName, nearest

    known = cells.chapters()
    for chapter in options.chapters:
        if chapter not in known:
            raise UnknownName(f"{chapter!r} is no chapter; {nearest(chapter, known)}")
    done: list[dict[str, Any]] = []
    with turns.job():
        for chapter, made in building.execute(options.chapters, options.jobs):
            error = str(made) if isinstance(made, MlsysimError) else ""
            products = made if isinstance(made, list) else []
            changed = [{"path": path, "what": what} for path, what in products if what != "same"]
            executed = isinstance(made, list)
            done.append(
                {"chapter": chapter, "executed": executed, "changed": changed, "error": error}
            )
            if error:
                print(f"mlsysim: {error}", file=sys.stderr, flush=True)
            elif not options.json:
                print(f"{'executed' if executed else 'fresh already:'} {chapter}", flush=True)
                for each in changed:
                    print(f"    {each['what']}: {each['path']}", flush=True)
    if options.json:
        _print_json(done)
    return int(any(each["error"] for each in done))


def _check(options: argparse.Namespace) -> int:
    from mlsysim.book.checking import check

    found, remark = check(history=options.history)
    wrong = [finding for finding in found if not finding.information]
    if options.json:
        _print_json({"findings": [vars(each) for each in found], "history": remark})
        return int(bool(wrong))
    for finding in found if options.verbose else wrong:
        if finding.rule != "unlooked":  # the last line says it
            print(finding)
    if remark:
        print(f"history: {remark}")
    unread, unquoted = (sum(each.rule == rule for each in found) for rule in ("unread", "unquoted"))
    unlooked = [each.message for each in found if each.rule == "unlooked"]
    print(
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
    from mlsysim import building, environment, turns
    from mlsysim.book import page

    if options.pdf:
        from mlsysim import paths
        from mlsysim.book import press

        with turns.job():
            made = paths.shown(press.build())
        _print_json({"pdf": made}) if options.json else print(f"built {made}")
        return 0
    environment.check()
    with turns.job():
        page.remove_left_behind()
        key = building.page_key()
        if building.page_is_torn():
            page.forget()
        page.build(options.jobs)
        building.record_page(key)
    if options.json:
        _print_json({"page": "build/book/index.html"})
    else:
        print("built build/book/index.html")
    return 0


def _new(options: argparse.Namespace) -> int:
    from mlsysim import authoring
    from mlsysim.errors import InputError
    from mlsysim.paths import shown

    if options.what == "chapter":
        if options.kind or options.base:
            raise InputError("--kind and --base are for scenarios")
        written = shown(authoring.new_chapter(options.name))
        also = " and its line in chapters/index.md"
    else:
        written = shown(authoring.new_scenario(options.name, options.kind, options.base))
        also = ""
    if options.json:
        _print_json({"written": written})
    else:
        print(f"wrote {written}{also}; it builds as it is: snakemake all")
        print("TODO marks what to fill in")
    return 0


def _live(options: argparse.Namespace) -> int:
    from mlsysim import live

    live.run(options.port)
    return 0
