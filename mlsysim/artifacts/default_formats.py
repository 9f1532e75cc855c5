"""chapters/formats.toml: how a key is printed by a quote that asks for no unit and no format."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from mlsysim import files, paths
from mlsysim.runtime.used import EVENT

__all__ = ["default_form", "path", "table"]

_FORM = re.compile(r"(?:in (?P<unit>\S+))?(?:(?:^|\s)as (?P<format>\S+))?")


def path() -> Path:
    """The one table of formats; a book may do without."""
    return paths.chapters() / "formats.toml"


def default_form(scenario: str, key: str) -> tuple[str, str]:
    """Unit and format of a key, those of the first pattern that it matches; both may be empty.

    A pattern is matched with ``SCENARIO.KEY``, the key as it stands in the artifact, so an input of
    the registry has its full name there. Raises InputError for a table of another form.
    """
    for pattern, form in table().items():
        if fnmatchcase(f"{scenario}.{key}", pattern):
            return form
    return "", ""


def table() -> dict[str, tuple[str, str]]:
    """Every pattern with its unit and format, in the order of the file."""
    sys.audit(EVENT, str(path()))
    try:
        known = path().stat()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise files.unusable(path(), f"cannot be read: {error.strerror}") from None
    return _table(path(), known.st_mtime_ns, known.st_size)


@lru_cache(maxsize=4)
def _table(file: Path, _mtime: int, _size: int) -> dict[str, tuple[str, str]]:
    made = {}
    for pattern, form in files.toml(file).items():
        found = _FORM.fullmatch(form) if isinstance(form, str) else None
        if not found or not form:
            raise files.unusable(
                file,
                f"{pattern}: {form!r} is no form of a number; expected "
                '"in UNIT as FORMAT", or one of the two',
            )
        made[pattern] = (found["unit"] or "", found["format"] or "")
    return made
