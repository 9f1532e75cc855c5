"""HTML by Jinja2: templates lie in a folder `templates` beside the module that fills them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from mlsysim import paths

if TYPE_CHECKING:
    from jinja2 import Environment, Template

__all__ = ["template"]


def template(path: str, **functions: Any) -> Template:
    """The template of that path within the package, as in "book/site/templates/cards.html".

    `functions` may be called in it and in its macros. Values are escaped, unless they are Markup;
    a name that was not given is an error.
    """
    return _environment().get_template(path, globals=functions)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # few commands make HTML

    return Environment(
        loader=FileSystemLoader(paths.PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
