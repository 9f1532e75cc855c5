"""What is wrong with YAML that a person wrote, in words that say where."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

__all__ = ["line_of", "reason"]


def line_of(error: yaml.YAMLError) -> int:
    """The line of a slip within its text, from 0."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    return int(mark.line) if mark else 0


def reason(error: yaml.YAMLError) -> str:
    """What the parser found, and while it was reading what.

    >>> import yaml
    >>> try:
    ...     yaml.safe_load("language: [python")
    ... except yaml.YAMLError as error:
    ...     print(reason(error))
    no valid YAML: expected ',' or ']', but got '<stream end>', while parsing a flow sequence
    """
    told = [str(getattr(error, "problem", None) or error)]
    told += [str(context)] if (context := getattr(error, "context", None)) else []
    return "no valid YAML: " + ", ".join(told)
