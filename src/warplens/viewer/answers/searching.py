"""Search: which names have a text in them, and the events of those names around a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from warplens.viewer import limits
from warplens.viewer.answers.event_address import located
from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from warplens.timeline.index import LaneIndex
    from warplens.viewer.answers.loaded_report import Opened


def search(opened: Opened, text: str, regex: bool, around: float, limit: int) -> dict[str, Any]:
    """Return `SearchAnswer`: events before and behind `around`, `limit` of each.

    Raises UsageError. `around`: ns from the origin.
    """
    if not text:
        return {"total": 0, "before": 0, "names": [], "events": []}
    lanes = opened.every_lane
    chosen = {id(index): names for index, names in lanes.search(text, regex)}
    sums: dict[tuple[str, str], int] = {}
    for index in {id(lane.index): lane.index for lane in lanes.all}.values():
        for number in chosen[id(index)].tolist():
            key = (index.names.layer(number), index.names.text(number))
            sums[key] = sums.get(key, 0) + int(index.names.count(number))

    def names(index: LaneIndex) -> Any:
        return chosen[id(index)]

    time = opened.origin + math.floor(around)
    before = lanes.find(names, -limits.TIME, time, limit, backward=True) if sums else []
    behind = lanes.find(names, time, limits.TIME, limit) if sums else []
    hits = sorted(
        {(one.lane.number, one.depth, one.start, one.row): one for one in [*before, *behind]}.values(),
        key=lambda one: one.start,
    )
    total = sum(sums.values())
    most = sorted(sums.items(), key=lambda item: -item[1])[: limits.NAMES]
    return {
        "total": total,
        "before": lanes.count(names, -limits.TIME, time, total) if total <= limits.COUNTED else None,
        "names": [{"layer": layer, "text": cut(name), "count": count} for (layer, name), count in most],
        "events": [located(opened, one) for one in hits],
    }
