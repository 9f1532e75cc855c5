"""What the environment of a command must not change: docstrings, and what Python's warnings do."""

from __future__ import annotations

import os
import sys
import warnings

from mlsysim.errors import InputError

__all__ = ["need_docstrings", "take_own_warnings"]

# What Python itself leaves unsaid.
_UNSAID = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def need_docstrings() -> None:
    """Refuse to make anything without docstrings. Raises InputError with what to unset.

    Artifacts and pages print them, so that both would come out without descriptions and equations.
    """
    if sys.flags.optimize >= 2:
        raise InputError(
            "Python drops docstrings here, and artifacts and pages print them: "
            "run `unset PYTHONOPTIMIZE`, or leave -OO out"
        )


def take_own_warnings() -> None:
    """Let PYTHONWARNINGS, which is meant for a person's own programs, change no command of ours.

    Libraries of the book warn of each other's changes; under ``error`` that would stop a build.
    """
    if os.environ.pop("PYTHONWARNINGS", None) is not None:
        warnings.resetwarnings()
        for kind in _UNSAID:
            warnings.simplefilter("ignore", kind)
