"""Everything that is not what it should be, each with its reasons: what `mlsysim status` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlsysim import naming
from mlsysim.artifacts import lock, staleness
from mlsysim.artifacts.code import one_look
from mlsysim.book.source import cells
from mlsysim.building.certificates import record_reasons
from mlsysim.building.records import chapter_reasons, page_is_stale, reads
from mlsysim.calibration import agreement
from mlsysim.runtime import environment

__all__ = ["ENVIRONMENT", "status"]

ENVIRONMENT = "the environment"  # how `status` names the libraries that are installed


@one_look()
def status() -> list[dict[str, Any]]:
    """Everything that is not what it should be, each with its reasons."""
    found: list[dict[str, Any]] = []
    if other := environment.differences():
        found.append({"what": ENVIRONMENT, "reasons": other})
    found += [
        {"what": f"results/scenarios/{verdict.name}.json", "reasons": list(verdict.reasons)}
        for verdict in staleness.verdicts()
        if not verdict.fresh
    ]
    stale = {Path(each["what"]).stem for each in found}
    found += [
        {"what": f"{each.file}:{each.line}", "reasons": [each.advice]}
        for each in agreement.differences()
    ]
    found += [
        {"what": path, "reasons": ["not the schema of this code"]}
        for path in staleness.stale_schemas()
    ]
    found += [
        {"what": path, "reasons": ["no scenario makes it; the next build removes it"]}
        for path in staleness.orphans()
    ]
    found += [
        {"what": path, "reasons": [f"{why}; rename it"]} for path, why in naming.misnamed().items()
    ]
    found += [{"what": "results/artifacts.lock", "reasons": [reason]} for reason in lock.faults()]
    found_lock = lock.read_lock()
    for chapter in cells.chapters():
        reasons = [f"reads {name}, which is stale" for name in reads(chapter) if name in stale]
        reasons += chapter_reasons(chapter, found_lock)
        if reasons:
            found.append({"what": f"chapters/{chapter}.md", "reasons": reasons})
    found += [
        {"what": path, "reasons": reasons} for path, reasons in record_reasons(found_lock).items()
    ]
    if page_is_stale():
        found.append(
            {"what": "build/book", "reasons": ["shows something else than the project holds"]}
        )
    return found
