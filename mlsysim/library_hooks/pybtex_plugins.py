"""Pybtex: its plug-ins."""

from __future__ import annotations

from pybtex.backends import plaintext
from pybtex.plugin import register_plugin

__all__ = ["find_plain_text_at_once"]


def find_plain_text_at_once() -> None:
    """Let pybtex know one of its own plug-ins, and not look for it among all installed packages.

    Written for pybtex 0.26.1 and sphinxcontrib-bibtex 2.7.0, which asks for it for every citation
    of a page. Buys 3 s when all pages are laid out.
    """
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)
