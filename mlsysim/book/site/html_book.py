"""Building the book: quotes, claims, notebooks to take away, and the HTML pages."""

from __future__ import annotations

import builtins
import io
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mlsysim import errors, files, paths
from mlsysim.artifacts.code import check_imported, one_look
from mlsysim.book.pages.page_sources import pages, read_once, write_records
from mlsysim.book.pages.refusals import refused
from mlsysim.book.reference.generated_pages import origin
from mlsysim.book.site import _notebooks
from mlsysim.book.source.cells import chapters
from mlsysim.errors import MlsysimError
from mlsysim.runtime import workers

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxParallelError

__all__ = ["build", "forget", "remove_left_behind", "run_sphinx"]

_MOST = 8  # processes that lay out pages; to start one takes the time of a page
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_PLACED = re.compile(
    r"^chapters/(?P<page>[^/\s]+)\.md:(?P<line>\d+): WARNING: [^'\"\n]*(?:'myst' [^'\"\n]*)?"
    r"(?P<quote>['\"]|not found: )(?P<word>[^'\"\n ]+)(?=['\"\s])",
    re.MULTILINE,
)
_UNLISTED = re.compile(r"(?P<page>[^/\s]+)\.md: WARNING: document isn't included in any toctree.*")
_GENERATED = re.compile(r"build/(?P<page>reference/[\w/]+)\.md(:\d+)?")


def build(jobs: int = 1) -> Path:
    """Write the records of quotes and claims, build/notebooks and build/book.

    `jobs` is how many processes read and write pages. Returns the first page. Chapters must have
    been executed. Raises MlsysimError that lists all that is wrong with the pages, or every warning
    of Sphinx, each with ``chapters/x.md:LINE``.
    """
    with read_once(), one_look():
        return _lay_out(jobs)


def _prepare(app: Sphinx) -> None:
    """Refuse what is wrong with the pages, all at once, and write the records and the notebooks."""
    from mlsysim.book.site.vocabulary import unknown

    book = pages()
    wrong = [*refused(book), *unknown(app, book)]
    if wrong:
        raise MlsysimError("\n".join(wrong))
    write_records(book)
    for page in book:
        if page.name in chapters():
            _notebooks.write_resolved(page)


def _lay_out(jobs: int) -> Path:
    """The pages as HTML; returns the first."""
    out = paths.build() / "book"
    # Sphinx warns only of what it reads anew, so after a build that failed it must read all.
    unfinished = paths.build() / "book.unfinished"
    if unfinished.exists():
        forget()
    files.write(unfinished, "")
    warnings = run_sphinx(out, "html", jobs, prepare=_prepare)
    if warnings:
        raise MlsysimError("the book has warnings:\n" + warnings)
    check_imported()  # what Sphinx keeps of pages bears the digest of the code on disk
    unfinished.unlink()
    (out / ".buildinfo.bak").unlink(missing_ok=True)  # of other settings, which a clean build lacks
    return out / "index.html"


def forget() -> None:
    """Remove the pages and what Sphinx knows of them, so that all are made anew."""
    for folder in ("book", "doctrees"):
        shutil.rmtree(paths.build() / folder, ignore_errors=True)


def remove_left_behind() -> None:
    """Remove products of chapters that are gone, and name the versioned ones on standard error."""
    kept = set(chapters())
    results = [paths.results() / kind for kind in ("tables", "figures")]
    named = [folder for kind in results for folder in _folders(kind) if folder.name not in kept]
    unversioned = [
        folder for folder in _folders(paths.build() / "figures") if folder.name not in kept
    ]
    for folder in (*named, *unversioned):
        shutil.rmtree(folder)
    for kind in ("executed", "notebooks"):
        for path in (paths.build() / kind).glob("*.*"):
            if path.stem not in kept:
                path.unlink()
    for folder in named:
        print(
            errors.printable(f"removed: {paths.shown(folder)}, which no chapter makes any longer"),
            file=sys.stderr,
            flush=True,
        )


def _folders(parent: Path) -> list[Path]:
    return sorted(path for path in parent.glob("*") if path.is_dir())


def run_sphinx(
    out: Path, builder: str, jobs: int = 1, prepare: Callable[[Sphinx], None] = lambda _: None
) -> str:
    """Build the book into `out`; returns Sphinx's warnings, with places relative to the root.

    `prepare` is called when Sphinx is set up and has read nothing yet.

    Raises the MlsysimError that reading or writing a page raised, in whichever process.
    """
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError, SphinxParallelError
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    source, told = paths.chapters(), io.StringIO()
    try:
        with patch_docutils(source), docutils_namespace():
            app = Sphinx(
                srcdir=source,
                confdir=source,
                outdir=out,
                doctreedir=paths.build() / ("doctrees" if builder == "html" else f"{builder}.read"),
                buildername=builder,
                status=None,
                warning=told,
                warningiserror=True,
                # The first process waits for the others in turns, and leaves its core to them.
                parallel=min(jobs, _MOST) + 1 if jobs > 1 else 1,
            )
            prepare(app)
            with workers.bound_to_this_process():
                app.build()
    except SphinxParallelError as error:
        told.write(_told_by(error))
    except SphinxError as error:
        told.write(f"{error}\n")
    except OSError as error:  # a full disk, of which Python does not say the file
        error.filename = error.filename or str(out)
        raise
    warnings = _UNLISTED.sub(_unlisted, _COLOR.sub("", told.getvalue()))
    warnings = _PLACED.sub(_on_its_line, warnings.replace(f"{paths.root()}/", "").strip())
    return _GENERATED.sub(lambda found: f"{origin(found['page'])}, on its page", warnings)


def _told_by(error: SphinxParallelError) -> str:
    """What Sphinx said in another process. Raises what else was raised there, by its name."""
    from mlsysim.library_hooks.sphinx_pages import raised_in_fork

    module, kind, message = raised_in_fork(error)
    if module == errors.__name__:
        raise getattr(errors, kind)(message) from None
    if isinstance(raised := getattr(builtins, kind, None), type) and issubclass(raised, OSError):
        reason = re.sub(r"^\[Errno \d+\] ", "", message)
        raise MlsysimError(f"{paths.shown(paths.build())}: {reason}") from None
    if module.startswith("sphinx."):
        return f"{message}\n"
    raise RuntimeError(error.traceback) from None


def _on_its_line(warning: re.Match[str]) -> str:
    """A warning with the line on which its word stands; Sphinx gives the first of the paragraph."""
    source = files.text(paths.chapters() / f"{warning['page']}.md").splitlines()
    first = int(warning["line"])
    for number, line in enumerate(source[first - 1 :], first):
        if warning["word"] in line:
            return warning[0].replace(f":{first}:", f":{number}:", 1)
        if not line.strip():
            break
    return warning[0]


def _unlisted(warning: re.Match[str]) -> str:
    """What to write where Sphinx only says that a page is in no table of contents."""
    page = warning["page"]
    return (
        f"{page}.md: in no table of contents; write the line {page} into the {{toctree}} of "
        "chapters/index.md"
    )
