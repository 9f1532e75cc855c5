"""The suite. It certifies artifacts in its own process, so it notes what it imports."""

from mlsysim.runtime import loaded

loaded.watch()
