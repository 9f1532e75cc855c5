"""The command `mlsysim`, and `python -m mlsysim`: it notes what it imports from the start."""

import sys

from mlsysim.runtime import loaded

loaded.watch()

from mlsysim.cli.main import main  # noqa: E402  only what comes after is noted

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
