"""A page as it is read: its quotes, claims and every other text that a reader sees."""
