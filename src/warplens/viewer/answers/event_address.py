"""Events as the page names them: report, table, process and row, with the place on the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warplens.viewer import limits
from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from warplens.timeline.lanes import Found
    from warplens.viewer.answers.loaded_report import Opened

_BITS = 32


def located(opened: Opened, found: Found) -> dict[str, Any]:
    """Return an event of the timeline as `Located`."""
    return {
        "report": opened.number,
        "table": found.lane.layer,
        "process": found.lane.process,
        "row": found.row,
        "track": found.lane.number,
        "lane": found.depth,
        "start": found.start - opened.origin,
        "duration": found.duration,
        "name": cut(found.name, limits.CELL),
    }


def by_id(opened: Opened, table: str, id_: int | None, start: int | None = None) -> dict[str, Any] | None:
    """Return where the row of a table with an id lies; None where it is on no track."""
    if id_ is None:
        return None
    found = opened.every_lane.located(table, id_, start)
    return None if found is None else located(opened, found)


def id_of(process: int, row: int) -> int:
    """Return the id of a row."""
    return (process << _BITS) | row
