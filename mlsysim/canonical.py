"""One way to write JSON, and digests of content."""

from __future__ import annotations

import hashlib
import json
from typing import Any

__all__ = ["digest", "dumps", "loads", "rounded"]


def rounded(value: float) -> float:
    """The nearest float of 12 significant digits; zero has no sign.

    Twelve digits are more than any printed number needs, and few enough to hide a last bit that
    differs between processors.

    >>> rounded(0.1 + 0.2)
    0.3
    """
    return float(f"{value:.12g}") + 0.0


def dumps(content: Any) -> str:
    """Canonical JSON text: keys in the order given, one value a line, no NaN, a final newline."""
    return json.dumps(_rounded(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str | bytes) -> Any:
    """What JSON text says. Raises ValueError for what is none, or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _rounded(content: Any) -> Any:
    if isinstance(content, float):
        return rounded(content)
    if isinstance(content, dict):
        return {key: _rounded(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_rounded(value) for value in content]
    return content


def digest(content: Any) -> str:
    """A digest of bytes, of a text, or of plain data whatever the order of its keys."""
    if isinstance(content, str):
        content = content.encode()
    elif not isinstance(content, bytes):
        content = json.dumps(content, sort_keys=True, ensure_ascii=True).encode()
    return hashlib.sha256(content).hexdigest()[:24]
