"""One way to write JSON and CSV, and digests of content."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from typing import Any

from mlsysim.scalars import plain

__all__ = ["csv_text", "digest", "dumps", "loads", "rounded"]


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


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    r"""A table as comma-separated text with exact values: floats as artifacts have them.

    >>> csv_text(["name", "time"], [["a, b", 0.1 + 0.2]])
    'name,time\n"a, b",0.3\n'
    """
    import csv  # few processes write one, and every start would pay for it

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = map(plain, row)
        writer.writerow(rounded(each) if isinstance(each, float) else each for each in cells)
    return text.getvalue()


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
