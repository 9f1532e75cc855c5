"""Displayed and spoken arithmetic between quotes, computed again."""
