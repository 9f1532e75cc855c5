"""How large what people type may be: every bound, with its reason, named by the errors it causes.

None is near what a book needs. Each keeps a slip, or a file that no person wrote, from taking
minutes or all of the memory before anybody is told.
"""

from __future__ import annotations

__all__ = ["CHAIN", "COMBINATIONS", "NAME", "NESTING", "PRODUCT", "TEXT", "TOML", "WRITTEN"]

# Characters of the name of a scenario or a chapter: file systems allow 255 bytes, to which ends are
# added, and a line of the lock has 200 characters.
NAME = 100
# Characters of CHAPTER/NAME of a table or a figure, which has one such line.
PRODUCT = 110
# Characters of one text in a file, such as a source; the longest has some six hundred.
TEXT = 4_000
# Bytes of a TOML file; the longest has six thousand, and its parser is quadratic in places.
TOML = 200_000
# Bytes of another file that people write, such as a chapter or a CSV file: the whole book has less.
WRITTEN = 1_000_000
# Tables within tables of a TOML file; a field needs two, and the parser's work is their square.
NESTING = 10
# Files that follow from one another by base or reference; the longest chain has six.
CHAIN = 30
# Values of a list, and combinations of the lists of a scenario: each may be a step to solve, in
# some two milliseconds, and a row to print.
COMBINATIONS = 1_000
