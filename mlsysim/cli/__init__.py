"""The command `mlsysim`: a module for each of its larger subcommands."""
