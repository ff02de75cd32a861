"""Events as the page names them: report, table, process and row, with the place on the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warplens.viewer import limits
from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from warplens.timeline.lanes import LaneEvent
    from warplens.viewer.answers.loaded_report import Opened

_BITS = 32


def located(opened: Opened, event: LaneEvent) -> dict[str, Any]:
    """Return an event of the timeline as `Located`."""
    return {
        "report": opened.number,
        "table": event.lane.layer,
        "process": event.lane.process,
        "row": event.row,
        "track": event.lane.number,
        "lane": event.depth,
        "start": event.start - opened.origin,
        "duration": event.duration,
        "name": cut(event.name, limits.CELL),
    }


def by_id(opened: Opened, table: str, id_: int | None, start: int | None = None) -> dict[str, Any] | None:
    """Return where the row of a table with an id lies; None if it is on no track."""
    if id_ is None:
        return None
    event = opened.every_lane.located(table, id_, start)
    return None if event is None else located(opened, event)


def id_of(process: int, row: int) -> int:
    """Return the id of a row."""
    return (process << _BITS) | row
