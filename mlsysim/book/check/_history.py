"""Values that artifacts had in earlier revisions, read from git's own store."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from mlsysim import paths
from mlsysim.book.check.known_values import Known, values_of
from mlsysim.canonical import loads

__all__ = ["earlier_values"]


def earlier_values() -> tuple[list[Known], str]:
    """Every number that an earlier revision of results/scenarios/*.json held, and a remark.

    The remark says what was searched, or why nothing could be: no git, no repository, or a clone
    that holds a part of the history only.
    """
    folder = paths.results().relative_to(paths.root()).as_posix() + "/scenarios"
    try:
        listed = _git(
            "log",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            "--full-history",
            "-m",
            "--format=commit %h",
            "--",
            f"{folder}/*.json",
        ).decode()
        shallow = _git("rev-parse", "--is-shallow-repository").strip() == b"true"
    except FileNotFoundError:
        return [], "git is not installed, so no earlier revision was searched"
    except subprocess.CalledProcessError:
        return [], "this is no git repository with a commit, so no earlier revision was searched"
    blobs: dict[str, str] = {}
    commits = set()
    for line in listed.splitlines():
        if line.startswith("commit "):
            commit = line.split()[1]
            commits.add(commit)
        elif line.startswith(":"):
            blob = line.split()[3]
            if blob.strip("0"):
                blobs[blob] = commit  # the log begins with the latest; the first to have it stays
    found = [
        value for blob, content in _contents(list(blobs)) for value in _values(content, blobs[blob])
    ]
    remark = f"searched {len(blobs)} artifacts of {len(commits)} revisions"
    if shallow:
        remark += "; the clone is shallow, so earlier ones were not"
    return found, remark


def _git(*arguments: str, text: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", "-C", str(paths.root()), *arguments], input=text, capture_output=True, check=True
    ).stdout


def _contents(blobs: list[str]) -> Iterator[tuple[str, bytes]]:
    """Each blob with its content, all read by one process."""
    out = _git("cat-file", "--batch", text="\n".join([*blobs, ""]).encode()) if blobs else b""
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        name, *rest = out[at:end].split()
        at = end + 1
        if len(rest) == 2:  # else it is missing, as in a partial clone
            size = int(rest[1])
            yield name.decode(), out[at : at + size]
            at += size + 1


def _values(content: bytes, revision: str) -> list[Known]:
    """The numbers of an artifact; none of a file that is no artifact, as early ones may be."""
    try:
        artifact = loads(content)
        return values_of(artifact, revision)
    except (AttributeError, KeyError, TypeError, ValueError):
        return []
