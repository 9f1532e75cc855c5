"""The search of the book: Sphinx's, which finds the stem of each word once and not once a page."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

__all__ = ["register"]


class SearchWords(SearchEnglish):
    """English words, by their stems."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._stems: dict[str, str] = {}

    def stem(self, word: str) -> str:
        """The stem of a word."""
        if word not in self._stems:
            self._stems[word] = super().stem(word)
        return self._stems[word]


def register(app: Sphinx) -> None:
    """Let Sphinx use it for English."""
    app.add_search_language(SearchWords)
