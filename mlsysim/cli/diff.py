"""`mlsysim diff`: what a change moves on the page, in the form that is asked for."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mlsysim import files
from mlsysim.errors import printable

if TYPE_CHECKING:
    from mlsysim.review.comparison import Comparison

__all__ = ["add_arguments", "diff"]


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `mlsysim diff` may be told."""
    command.add_argument(
        "before",
        metavar="A",
        nargs="?",
        default="",
        help="a revision, a tag or a folder; else where this branch left the main one. A..B and "
        "A...B are as git has them",
    )
    command.add_argument(
        "after", metavar="B", nargs="?", default="", help="the same; else the working tree"
    )
    command.add_argument(
        "--main", metavar="BRANCH", default="", help="the main branch, if it is not found"
    )
    command.add_argument("--all", action="store_true", help="fold nothing away")
    command.add_argument(
        "--md", action="store_true", help="print Markdown, as long as a comment in a forge may be"
    )
    command.add_argument(
        "--html", metavar="FILE", default="", help="write one page with all figures to FILE"
    )


def diff(options: argparse.Namespace) -> int:
    """Print or write the comparison; the exit status is its verdict."""
    from mlsysim.review.comparison import Comparison
    from mlsysim.review.trees import compared

    before, after = compared(options.before, options.after, main=options.main)
    found = Comparison(before, after)
    if options.html:
        from mlsysim.review.page import page

        path = Path(options.html)
        files.write(path.resolve(), page(found))
        print(printable(f"wrote {options.html}"))
    if options.json:
        from mlsysim.review.data import as_data

        text = json.dumps(as_data(found), indent=2, ensure_ascii=False)
        print("\n".join(map(printable, text.split("\n"))))
    elif options.md:
        from mlsysim.review.markdown import markdown
        from mlsysim.review.report import report

        print(markdown(report(found, whole=options.all)), end="")
    elif not options.html:
        _show(found, whole=options.all)
    return found.verdict


def _show(found: Comparison, *, whole: bool) -> None:
    """Print the report; in a terminal as wide as it is, in colours, and page by page."""
    from mlsysim.review.report import report
    from mlsysim.review.terminal import lines

    terminal = sys.stdout.isatty()
    colour = terminal and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size((100, 24)).columns
    text = "\n".join(lines(report(found, whole=whole), width=width, colour=colour)) + "\n"
    pager = shutil.which("less") if terminal else None
    if pager:
        subprocess.run([pager, "-FRX"], input=text, text=True, check=False)
    else:
        sys.stdout.write(text)
