"""Artifacts: a scenario becomes a versioned JSON file, fresh or stale by its content alone."""
