"""A selected stretch of time: busy share of each track, and time by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from warplens.viewer.answers.loaded_report import Opened

_NAMES = 1_000


def selected(opened: Opened, begin: int, end: int, tracks: Collection[int]) -> dict[str, Any]:
    """Return `Selected`; `begin` and `end` in ns from the report's origin.

    Of events that reach out of it, what lies inside counts.
    """
    lanes = opened.every_lane
    window = (opened.origin + begin, opened.origin + max(end, begin + 1))
    sums: dict[tuple[str, str], list[int]] = {}
    for layer, name, count, total, longest in lanes.sums(
        tracks, *window
    ):  # a name may be there in several colours and parts
        own = sums.setdefault((layer, name), [0, 0, 0])
        own[0], own[1], own[2] = own[0] + count, own[1] + total, max(own[2], longest)
    most = sorted(sums.items(), key=lambda item: (-item[1][1], -item[1][0]))[:_NAMES]
    return {
        "begin": begin,
        "end": end,
        "tracks": [
            {"track": track, "busy": share, "events": events}
            for track, (share, events) in lanes.busy(tracks, *window).items()
        ],
        "names": [
            {
                "layer": layer,
                "name": cut(name),
                "count": count,
                "total": total,
                "mean": total / count,
                "maximum": longest,
            }
            for (layer, name), (count, total, longest) in most
        ],
    }
