"""One value of a TOML file is another, and all else stays as it was, byte for byte.

The place of a value is where other text makes a document that differs in that value alone, so
nothing here knows more of TOML than what a value can look like.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlsysim import files
from mlsysim.calibration.following import Follower
from mlsysim.declarations.documents import folder
from mlsysim.errors import InputError

__all__ = ["line_of", "path_of", "rewritten"]

# What a value can look like in a file, after its equals sign.
_VALUE = re.compile(
    r"""=[ \t]*(?P<value>"(?:[^"\\\n]|\\.)*" | '[^'\n]*' | \[[^\]]*\] | [\w.+-]+)""", re.VERBOSE
)


def line_of(follower: Follower) -> int:
    """The line of a value in its file."""
    given = follower.leaf["value"]
    other = 1 if given == "" else ""
    return rewritten(follower, other)[0]


def rewritten(follower: Follower, new: Any) -> tuple[int, bytes]:
    """The line of a value, and its file with another in its place.

    Raises InputError if no place is found, as for a text over several lines.
    """
    data = files.read(path_of(follower))
    text = data.decode()
    wanted = _with(tomllib.loads(text), follower.key, new)
    for found in _VALUE.finditer(text):
        start, end = found.span("value")
        tried = text[:start] + _toml(new) + text[end:]
        if _loads(tried) == wanted:
            return text.count("\n", 0, start) + 1, tried.encode()
    raise InputError(f"{follower.place[0]}: {follower.key}: write its value on one line")


def path_of(follower: Follower) -> Path:
    """The file in which a value stands."""
    collection, _, name = follower.document.reference.partition(".")
    return folder(collection) / f"{name}.toml"


def _with(document: Mapping[str, Any], key: str, new: Any) -> dict[str, Any]:
    """A parsed file in which the value of a key is another."""
    first, _, rest = key.partition(".")
    part = document[first]
    return {**document, first: _with(part, rest, new) if rest else {**part, "value": new}}


def _loads(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
