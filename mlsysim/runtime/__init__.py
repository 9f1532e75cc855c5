"""The process at work: its interpreter, libraries and modules, what it reads, and its turn."""
