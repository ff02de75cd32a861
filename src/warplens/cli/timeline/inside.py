"""Inside kernels in the terminal timeline.

For each launch its warps, by SM and block, with lanes of regions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warplens.analysis.intrakernel.occupancy import (
    inside_launches,
    inside_marks,
    inside_warps,
    region_cells,
    region_lanes,
)
from warplens.cli.printing.words import counted
from warplens.cli.timeline.bars import bars_of
from warplens.cli.timeline.model import Group, Mark, Track
from warplens.errors import MissingData
from warplens.timeline.names import gpu_label

if TYPE_CHECKING:
    from warplens.analysis.occupancy import Window
    from warplens.report import Report

_LAUNCHES = 4  # that are shown at once
_UNASKED = 8  # warps of a launch that nobody asked for


def window_of(report: Report, name: str) -> Window:
    """Return the time of the longest launch of a name.

    Raises MissingData if no launch recorded, or none is called so.
    """
    launches = inside_launches(report, None, name)
    if launches:
        return launches[0]["start"], launches[0]["end"]
    known = list(dict.fromkeys(str(row["name"] or "kernel") for row in inside_launches(report, None)))
    why = (
        f"those that did are called {', '.join(known[:8])}"
        if known
        else "none did: see `warplens.intrakernel`"
    )
    raise MissingData(
        f"no launch of {report.path.name} called {name} recorded regions inside its kernel: {why}."
    )


def inside_groups(
    report: Report, window: Window, columns: int, name: str | None, most: int, depth: int
) -> tuple[list[Group], int]:
    """Return a group for each launch, and how many warps are left out.

    `name`: a part of the launches' names; None: nobody asked, so a launch is shown if it is the only one in the window.
    """
    launches = inside_launches(report, window, name or "")
    if name is None and len(launches) != 1:
        return [], 0
    most = most if name is not None else min(most, _UNASKED)
    shown = sorted(launches[:_LAUNCHES], key=lambda row: row["start"])
    hidden, groups = 0, []
    for launch in shown:
        warps, more = inside_warps(report, launch["id"], window, most=max(most // len(shown), 1))
        hidden += more
        groups.append(Group(_label(launch), _tracks(report, window, columns, warps=warps, depth=depth)))
    return groups, hidden


def _label(launch: dict[str, Any]) -> str:
    where = [gpu_label(launch["device"], None)] if launch["device"] is not None else []
    where += [f"stream {launch['stream']}"] if launch["stream"] is not None else []
    where.append(counted(launch["units"], "warp"))
    return f"inside {launch['name'] or 'kernel'} #{launch['generation']} ({', '.join(where)})"


def _tracks(
    report: Report, window: Window, columns: int, warps: list[dict[str, Any]], depth: int
) -> list[Any]:
    units = [warp["id"] for warp in warps]
    lanes = region_lanes(report, units)
    tracks = {}
    for warp in warps:
        need = lanes.get(warp["id"], 0)
        label = f"SM {warp['sm']} b{warp['cta']} w{warp['warp']}"
        tracks[warp["id"]] = Track(
            label, "", [[] for _ in range(min(need, depth))], deeper=max(need - depth, 0)
        )
    collected: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for cell in region_cells(report, window, columns, units=units, depth=depth).to_pylist():
        collected.setdefault((cell["thread"], cell["depth"]), []).append(cell)
    for (unit, lane), cells in collected.items():
        tracks[unit].lanes[lane] = bars_of(cells)
    for row in inside_marks(report, window, columns, units=units):
        tracks[row["unit"]].marks.append(Mark(row["col"], row["name"] or "", row["number"]))
    for track in tracks.values():
        track.lanes = [lane for lane in track.lanes if lane]
    return list(tracks.values())
