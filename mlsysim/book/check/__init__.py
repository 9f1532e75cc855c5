"""What `mlsysim check` finds: numbers typed by hand, and inputs that nobody reads."""
