"""Where this project reaches into a library: past what it documents, or into what is its own.

A module for each library. Every function and class says for which version it was written and what
it buys, and has a test of its name in tests/library_hooks/test_library_hooks.py, which an upgrade
that breaks it fails. A hook raises `changed` where the library has become another; one that is
only for speed does without. Seconds are of processor time; to lay out all pages of the book takes
11 with all hooks, by two processes.
"""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["changed", "need"]


def changed(library: str, written_for: str, what: str) -> RuntimeError:
    """The error for a library that is no longer what a hook was written for."""
    return RuntimeError(
        f"{what}, as in {library} {written_for}: needed by mlsysim.library_hooks, "
        f"and {library} {version(library)} is another"
    )


def need(library: str, written_for: str, owner: object, *names: str) -> None:
    """See that something of a library has these attributes. Raises RuntimeError if it has not."""
    for name in names:
        if not hasattr(owner, name):
            what = getattr(owner, "__qualname__", type(owner).__qualname__)
            raise changed(library, written_for, f"{what}.{name}")
