"""Python: what each fork does first, and processes that look for no garbage."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import util

__all__ = ["first_in_each_fork", "without_collector"]


@contextmanager
def first_in_each_fork(work: Callable[[], None]) -> Iterator[None]:
    """Every process that `multiprocessing` forks in the block does this before anything else.

    Written for Python 3.11 to 3.13, where `multiprocessing.util.register_after_fork` is not
    documented; `os.register_at_fork` runs before a fork knows its parent, and cannot be taken back.
    Buys that the processes of Sphinx end with a build that was killed.
    """
    held = _Held(work)
    util.register_after_fork(held, _Held.call)
    yield
    del held  # multiprocessing forgets what nothing else holds


class _Held:
    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work

    def call(self) -> None:
        """What was asked for."""
        self.work()


@contextmanager
def without_collector() -> Iterator[None]:
    """Look for no garbage in the block, and never for what was made in it: a process ends soon.

    Written for Python 3.11 to 3.13. Buys 5 s when all pages are laid out, of which one when the
    process ends.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
