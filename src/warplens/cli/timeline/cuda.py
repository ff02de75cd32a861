"""CUDA in the terminal timeline: API calls under their threads.

Each GPU with how busy it was, its streams, copies and counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warplens.cli.timeline.bars import bars_of
from warplens.cli.timeline.gpu_gauges import gpu_gauges
from warplens.cli.timeline.model import Group, Level, Track
from warplens.timeline.kinds import label_of
from warplens.timeline.names import direction, gpu_label, stream_name

if TYPE_CHECKING:
    from warplens.analysis.gpu.occupancy import GpuRow
    from warplens.analysis.occupancy import Window
    from warplens.cli.timeline.work import Work
    from warplens.report import Report


def api_tracks(work: Work, window: Window, columns: int, threads: Sequence[int]) -> dict[int, Track]:
    """Return the row of API calls of each thread."""
    collected: dict[int, list[dict[str, Any]]] = {}
    for row in work.api_cells(window, columns, threads):
        collected.setdefault(row["thread"], []).append(row)
    return {
        thread: Track(label_of("cuda_api"), "", [bars_of(rows)], task=True)
        for thread, rows in collected.items()
    }


def gpu_groups(
    report: Report,
    work: Work,
    window: Window,
    columns: int,
    processes: dict[int, str],
    most: int,
    counters: int,
) -> tuple[list[Group], int, int]:
    """Return a group for each GPU of the `processes`, and the number of hidden rows and counters.

    `processes`: key to label.

    `most`: rows of each GPU, the busiest ones; `counters`: of a process; a GPU has half as many.
    """
    every = work.gpu_rows(window) if _any(report) else []
    wanted = [row for row in every if row.process in processes]
    rows, hidden = _busiest(wanted, most)
    devices = {(row["process"], row["device"]): row for row in report.table("devices").to_pylist()}
    names = {
        (row["process"], row["context"], row["stream"]): row for row in report.table("streams").to_pylist()
    }
    contexts = {
        (row.process, row.device): {
            each.context
            for each in wanted
            if each.what is None and (each.process, each.device) == (row.process, row.device)
        }
        for row in wanted
    }
    gauges, hosts = gpu_gauges(
        report,
        window,
        columns,
        processes=processes,
        devices=devices,
        used={(row.process, row.device) for row in every},
    )
    groups: dict[tuple[int, int], Group] = {}
    busy = work.utilization(window, columns) if rows else {}
    places = {
        place
        for place in [*((row.process, row.device) for row in rows), *gauges]
        if place[0] in processes or place[0] < 0
    }
    for place in sorted(places, key=lambda place: (place[0] < 0, abs(place[0]), place[1])):
        label = (
            f"{gpu_label(place[1], (devices.get(place) or {}).get('name'))} ({processes[place[0]]})"
            if place[0] in processes
            else f"GPU {place[1]} (whole device{f' of {hosts[~place[0]]}' if len(hosts) > 1 else ''})"
        )
        groups[place] = Group(label)
        if place in busy:
            groups[place].rows.append(Level("busy", tuple(busy[place].tolist())))
    tracks = [_track(row, names, len(contexts[row.process, row.device]) > 1) for row in rows]
    collected: dict[int, list[dict[str, Any]]] = {}
    for cell in work.gpu_cells(window, columns, rows) if rows else ():
        collected.setdefault(cell["thread"], []).append(cell)
    for index, (row, track) in enumerate(zip(rows, tracks, strict=True)):
        track.lanes.append(bars_of(collected.get(index, [])))
        groups[row.process, row.device].rows.append(track)
    unseen, room = 0, (counters + 1) // 2
    for place, shown in gauges.items():
        groups[place].gauges, unseen = shown[:room], unseen + max(len(shown) - room, 0)
    return list(groups.values()), hidden, unseen


def _any(report: Report) -> bool:
    return any(report.tables[table] for table in ("kernels", "memcpys", "memsets", "graphs"))


def _busiest(rows: list[GpuRow], most: int) -> tuple[list[GpuRow], int]:
    """Return the rows to show, in their order, and how many are left out."""
    kept: set[int] = set()
    for place in {(row.process, row.device) for row in rows}:
        own = [index for index, row in enumerate(rows) if (row.process, row.device) == place]
        kept.update(sorted(own, key=lambda index: -rows[index].busy)[:most])
    return [row for index, row in enumerate(rows) if index in kept], len(rows) - len(kept)


def _track(row: GpuRow, names: dict[tuple[int, int, int], dict[str, Any]], several: bool) -> Track:
    if row.what is not None:
        return Track(direction(row.what))
    context = f"{row.context}/" if several else ""
    name = stream_name(names.get((row.process, row.context or 0, row.stream or 0)))
    return Track(f"stream {context}{row.stream}", name or "")
