"""`python -m mlsysim` is the command `mlsysim`."""

import sys

from mlsysim.cli import main

sys.exit(main())
