"""The files of a revision or a folder; nothing of a revision is checked out, built or executed."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol

from mlsysim import paths
from mlsysim.errors import InputError, nearest

__all__ = ["Folder", "Revision", "Tree", "common_base", "compared", "git", "tree"]

# What a comparison reads; all else of a project says nothing about what the book prints.
_PARTS = ("accepted", "chapters", "mlsysim", "results", "scenarios", "requirements.lock")
WORKING_TREE = "the working tree"


class Tree(Protocol):
    """Files by path, as a project holds them, each with an identity of its content."""

    label: str

    @property
    def ids(self) -> Mapping[str, str]:
        """The identity of each file's content, as git computes it, by path."""

    def read(self, path: str) -> bytes:
        """The content of a file with LF line ends; none of one that is not there."""


class Revision:
    """The files of a commit, from git's object store."""

    def __init__(self, label: str, commit: str) -> None:
        self.label = label
        self.commit = commit

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """As git has them."""
        listed = git("ls-tree", "-r", "-z", self.commit, "--", *_PARTS).split("\0")
        found = {}
        for head, _, path in (line.partition("\t") for line in listed if line):
            _, kind, name = head.split()
            if kind == "blob":
                found[path] = name
        return found

    def read(self, path: str) -> bytes:
        """The content of a file, from git."""
        name = self.ids.get(path)
        return _objects().read(name) if name else b""


class Folder:
    """The files of a folder as they are on disk."""

    def __init__(self, label: str, folder: Path) -> None:
        self.label = label
        self.folder = folder
        self._held: dict[str, bytes] = {}

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """As git would compute them of what is on disk."""
        return {path: _id(self.read(path)) for path in sorted(self._paths())}

    def _paths(self) -> Iterable[str]:
        for part in _PARTS:
            top = self.folder / part
            if top.is_file():
                yield part
            for folder, below, names in os.walk(top):
                below[:] = [each for each in below if not each.startswith((".", "__pycache__"))]
                inside = os.path.relpath(folder, self.folder).replace(os.sep, "/")
                yield from (f"{inside}/{name}" for name in names if not name.startswith("."))

    def read(self, path: str) -> bytes:
        """The content of a file, read once."""
        if path not in self._held:
            try:
                data = (self.folder / path).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                data = b""
            except OSError as error:
                raise InputError(f"{path}: cannot be read: {error.strerror}") from None
            # A checkout may have other line ends than git keeps.
            self._held[path] = data if b"\0" in data else data.replace(b"\r\n", b"\n")
        return self._held[path]


def _id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class _Objects:
    """One `git cat-file` that answers for as long as the process runs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._run: subprocess.Popen[bytes] | None = None

    def read(self, name: str) -> bytes:
        if self._run is None:
            self._run = subprocess.Popen(
                ["git", "cat-file", "--batch"],
                cwd=self._root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        ask, answer = self._run.stdin, self._run.stdout
        if ask is None or answer is None:
            raise InputError("git cat-file has no pipes")
        ask.write(f"{name}\n".encode())
        ask.flush()
        head = answer.readline().split()
        if len(head) != 3:
            raise InputError(
                f"git has no object {name}, which this clone knows of; run: git fetch --unshallow"
            )
        data = answer.read(int(head[2]))
        answer.read(1)
        return data.replace(b"\r\n", b"\n") if b"\0" not in data else data


_OBJECTS: dict[Path, _Objects] = {}


def _objects() -> _Objects:
    return _OBJECTS.setdefault(paths.root(), _Objects(paths.root()))


def git(*arguments: str, of: Path | None = None) -> str:
    """What git prints. Raises InputError with git's own words."""
    run = _git(*arguments, of=of)
    if run.returncode:
        told = run.stderr.strip().splitlines()
        raise InputError(f"git {arguments[0]}: {told[-1] if told else 'failed'}")
    return run.stdout


def _git(*arguments: str, of: Path | None = None) -> subprocess.CompletedProcess[str]:
    folder = of or paths.root()
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except FileNotFoundError:
        raise InputError("git is not installed, and revisions are read from it") from None


def _commit(name: str) -> str:
    """The commit that a name stands for; empty if it stands for none."""
    if name.startswith("-"):
        return ""
    run = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return run.stdout.strip()


def tree(name: str) -> Tree:
    """The tree that a person names: a revision of git, or the folder of a project.

    Raises InputError that names what there is instead.
    """
    if commit := _commit(name):
        return Revision(name, commit)
    folder = Path(name).expanduser()
    if (folder / "results").is_dir():
        return Folder(name, folder.resolve())
    if folder.is_dir():
        raise InputError(f"{name} is a folder without results/, so no book of this kind is in it")
    known = git(
        "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"
    )
    raise InputError(
        f"{name!r} is no revision of git and no folder; {nearest(name, known.split())}" + _shallow()
    )


def _shallow() -> str:
    """What to add where a clone holds only the end of the history."""
    if _git("rev-parse", "--is-shallow-repository").stdout.strip() != "true":
        return ""
    return "; this clone is shallow, so run: git fetch --unshallow --tags"


def working_tree() -> Tree:
    """What is on disk, committed or not."""
    return Folder(WORKING_TREE, paths.root())


def compared(first: str = "", second: str = "", *, main: str = "") -> tuple[Tree, Tree]:
    """The two trees that the command line names, the older one first.

    Without a name it is where this branch left the main one, and the working tree; with one name,
    that and the working tree; ``A..B`` is A and B, ``A...B`` is B and where it left A.
    Raises InputError as `tree` and `common_base` do.
    """
    if not second and ".." in first and not Path(first).is_dir():
        three = "..." in first
        older, _, newer = first.partition("..." if three else "..")
        older, newer = older or "HEAD", newer or "HEAD"
        return (_base(older, newer) if three else tree(older)), tree(newer)
    before = tree(first) if first else common_base(main)
    return before, tree(second) if second else working_tree()


def common_base(main: str = "") -> Tree:
    """Where this branch left the main one, so that nobody else's changes are compared."""
    return _base(main or _main(), "HEAD")


def _base(main: str, branch: str) -> Tree:
    for name in (main, branch):
        if not _commit(name):
            tree(name)  # says what there is
            raise InputError(f"{name!r} is a folder; a common base needs two revisions of git")
    run = _git("merge-base", main, branch)
    commit = run.stdout.split("\n")[0]
    if not commit:
        raise InputError(
            f"{branch} and {main} have no common revision here{_shallow() or '; name a base'}"
        )
    return Revision(f"{main} ({commit[:7]})", commit)


def _main() -> str:
    """The main branch: what a forge says, the head of a remote, or a branch of that name."""
    asked = os.environ.get("GITHUB_BASE_REF", "")
    remotes = git("remote").split()
    heads = [_git("rev-parse", "--abbrev-ref", f"{each}/HEAD").stdout.strip() for each in remotes]
    names = [f"{each}/{asked}" for each in remotes if asked] + heads
    names += [f"{each}/main" for each in remotes] + ["main", "master"]
    for name in names:
        if name and _commit(name):
            return name
    raise InputError(
        f"no main branch is found among {', '.join(dict.fromkeys(filter(None, names)))}; "
        f"name one: --main BRANCH{_shallow()}"
    )
