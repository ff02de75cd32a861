"""The CPU side in the terminal timeline.

Under each thread its states, samples, Python calls, tasks, imports, GC, GIL and OS calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warplens.analysis.cpu.occupancy import (
    KINDS_OF_SAMPLES,
    ThreadActivity,
    band_cells,
    bar_cells,
    event_cells,
    sample_cells,
)
from warplens.cli.timeline.bars import bars_of
from warplens.cli.timeline.model import Band, Bar, Mark, Track
from warplens.errors import UsageError
from warplens.timeline.kinds import CPU, label_of

if TYPE_CHECKING:
    from warplens.analysis.occupancy import Window
    from warplens.report import Report

# The rows below a thread by what --rows calls them, in the order in which they stand: the layer of each.
LAYERS = {
    "states": "thread_states",
    "samples": "samples",
    "python": "python_calls",
    "tasks": "task_samples",
    "imports": "imports",
    "gc": "gc",
    "gil": "gil",
    "osrt": "osrt",
}
ROWS = {row: label_of(layer) for row, layer in sorted(LAYERS.items(), key=lambda each: CPU.index(each[1]))}
_BANDS = ("states", "gil")
# Imports nest deep and say little there: they get a part of the levels that ranges get.
_SHARE_OF_DEPTH = {"python": 2, "imports": 4}


def wanted_rows(text: str | None) -> tuple[str, ...]:
    """Read --rows: names of rows with commas between them, `all` or `none`. Raises UsageError."""
    if text is None or text == "all":
        return tuple(ROWS)
    chosen = [] if text == "none" else [name.strip() for name in text.split(",") if name.strip()]
    for name in chosen:
        if name not in ROWS:
            raise UsageError(f"--rows {text}: no row {name!r}; choose from {', '.join(ROWS)}, all and none.")
    return tuple(name for name in ROWS if name in chosen)


def cpu_rows(
    report: Report,
    window: Window,
    columns: int,
    seen: Mapping[int, ThreadActivity],
    rows: Sequence[str],
    depth: int,
) -> dict[int, list[Track | Band]]:
    """Return the rows below each thread (key: its facts).

    `depth`: levels of ranges, of which Python calls and imports get a part.
    """
    tracks_of: dict[int, list[Track | Band]] = {thread: [] for thread in seen}
    for row in rows:
        if row in _BANDS:
            made: dict[int, Track | Band] = _bands(report, window, columns, seen=seen, row=row)
        elif row == "samples":
            made = _samples(report, window, columns, seen=seen)
        else:
            made = _bars(
                report,
                window,
                columns,
                seen=seen,
                row=row,
                depth=max(depth // _SHARE_OF_DEPTH.get(row, 1), 1),
            )
        for thread, track in made.items():
            tracks_of[thread].append(track)
    return tracks_of


def _bands(
    report: Report, window: Window, columns: int, seen: Mapping[int, ThreadActivity], row: str
) -> dict[int, Track | Band]:
    threads = [thread for thread, facts in seen.items() if row in facts.lanes]
    shares: dict[int, list[tuple[float, float, float]]] = {}
    for cell in band_cells(report, window, columns, name=row, threads=threads).to_pylist() if threads else ():
        shares.setdefault(cell["thread"], [(0.0, 0.0, 0.0)] * columns)[cell["col"]] = (
            cell["solid"],
            cell["shade"],
            cell["dot"],
        )
    return {thread: Band(ROWS[row], row, tuple(cells)) for thread, cells in shares.items()}


def _bars(
    report: Report, window: Window, columns: int, seen: Mapping[int, ThreadActivity], row: str, depth: int
) -> dict[int, Track | Band]:
    tracks: dict[int, Track | Band] = {}
    threads = [thread for thread, facts in seen.items() if row in facts.lanes]
    if not threads:
        return tracks
    lanes = _lanes(bar_cells(report, window, columns, name=row, threads=threads, depth=depth))
    for thread, own in lanes.items():
        deeper = max(seen[thread].lanes[row] - depth, 0)
        tracks[thread] = Track(
            ROWS[row], "", [bars_of(own[level]) for level in sorted(own)], deeper=deeper, task=True
        )
    if row == "python":
        for cell in event_cells(report, window, columns, threads=threads).to_pylist():
            track = tracks.setdefault(cell["thread"], Track(ROWS[row], "", task=True))
            assert isinstance(track, Track)
            track.marks.append(Mark(int(cell["col"]), cell["message"] or "", int(cell["number"])))
    return tracks


def _samples(
    report: Report, window: Window, columns: int, seen: Mapping[int, ThreadActivity]
) -> dict[int, Track | Band]:
    tracks: dict[int, Track | Band] = {}
    for kind in KINDS_OF_SAMPLES:
        threads = [
            thread
            for thread, facts in seen.items()
            if f"samples {kind}" in facts.lanes and thread not in tracks
        ]
        lanes = _lanes(sample_cells(report, window, columns, kind=kind, threads=threads)) if threads else {}
        tracks.update(
            {thread: Track(ROWS["samples"], "", [_runs(own[0])], task=True) for thread, own in lanes.items()}
        )
    return tracks


def _runs(rows: list[dict[str, Any]]) -> list[Bar]:
    """Join neighbouring columns in which samples saw one function most.

    However often the thread was interrupted in the meantime.
    """
    runs: list[list[dict[str, Any]]] = []
    for row in rows:
        last = runs[-1][-1] if runs else None
        if (
            last is not None
            and row["col"] == last["col"] + 1
            and row["top"]["message"] == last["top"]["message"]
        ):
            runs[-1].append(row)
        else:
            runs.append([row])
    return [
        Bar(
            run[0]["col"],
            run[-1]["col"],
            run[0]["top"]["message"],
            domain=None,
            color=run[0]["top"]["color"],
            many=False,
            number=1,
            busy=tuple(c["busy"] for c in run),
        )
        for run in runs
    ]


def _lanes(cells: Any) -> dict[int, dict[int, list[dict[str, Any]]]]:
    cells_of: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for cell in cells.to_pylist():
        cells_of.setdefault(cell["thread"], {}).setdefault(cell["depth"], []).append(cell)
    return cells_of
