"""The HTML and the print of the book: Sphinx, its nodes, cards and downloads."""
