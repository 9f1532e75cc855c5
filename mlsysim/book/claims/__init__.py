"""Claims: phrases with a condition that is tested on the artifacts at every build."""
