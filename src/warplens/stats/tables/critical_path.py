"""Critical Path Summary.

## What it shows
Which work the recorded time depends on: the longest chain of things of which each waited for the one before, from the first to the last,
summed by what they are. What is not on it can take longer (by its slack) without anything ending later; what is on it is worth the effort.
`:what-if=NAME:factor=0.5` says how long it would take if something took another time.

## Columns
- Time (%), Time (ns): on the path. All rows add up to the whole time, but for what a note says is not explained. Pieces: how many.
- Gain (ns): by how much the whole would be shorter if this took no time at all: less than its time where another chain then decides.
- All (ns): what these things took, on the path or not. Slack (ns): of those off the path, the least by which one may be later.
- Kind: `CPU` (the host between its calls), `CUDA API`, `kernel`, `communication`, `memcpy`, `memset`, `graph`, `launch latency` (from call
  to operation), `stream gap` (between operations of a stream), `sync return` (from the end of work to that of the call that waited for it),
  `full queue` (from when the queue had room to the end of the launch), `before` (before what began for a cause that is not known).
- Name: of the kernel, copy or call; of `CPU` the innermost NVTX range, `domain:name`.
- Rank, PID, TID, Thread, Device, Stream: each only where it tells rows apart. `:by=range`: Range is that around the launch, or the call.

## How it is computed
[Defined here](../explain/critical-path.md): points in time (begin and end of each call of CUDA and of each operation of a GPU) and
what each waits for: its thread, its call, its stream, an event, work that a call synchronizes with, the other ranks of a collective. With a
filter or `:step=3`, that time alone; things across its edges are cut there.

## Traps
- It knows what CUDA and the framework tell: a thread that waits for another in a lock, or for a file, is `CPU` time.
- Gains do not add up: after one, the path is another.
- A what-if does not know which other launches would find their queue full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.critical_path.summary import KEYS, summed
from warplens.model.words import counted
from warplens.stats.base import noted, one_of
from warplens.stats.critical import answer, find, path_notes, placed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(
    report: Report,
    selection: Selection,
    *,
    by: str = "name",
    step: int = -1,
    what_if: str = "",
    factor: float = 0.0,
    gains: int = 10,
    rows: int = 40,
) -> pa.Table:
    """Return the summary; MissingData where there is no CUDA data.

    Args:
        report: the report.
        selection: which part of it.
        by: `name`, `kind`, `place` (thread or stream) or `range` (NVTX).
        step: number of the training step to look at alone, from 0.
        what_if: a kind, kernel, call or NVTX range that takes another time; `*` stands for any text.
        factor: how many times as long it takes then; 0: no time.
        gains: for how many rows to work out the gain.
        rows: how many rows to show; 0: all.
    """
    one_of("by", by, tuple(KEYS))
    path = find(report, selection, step)
    summary = summed(report, path, by, gains=gains)
    left = summary.num_rows - rows if rows and summary.num_rows > rows else 0
    left_out = (
        f"{counted(left, 'row')} left out with {pc.sum(summary.column('time').slice(rows)).as_py():,} ns; `:rows=0` has all."
        if left
        else ""
    )
    summary = summary.slice(0, rows) if left else summary
    length = path.length or 1
    labels = {"category": "Kind", "name": "Name", "range": "Range"}
    columns = {
        "Time (%)": pc.divide(
            pc.multiply(pc.cast(summary.column("time"), pa.float64()), 100.0), float(length)
        ),
        "Time (ns)": summary.column("time"),
        "Pieces": summary.column("pieces"),
        "Gain (ns)": summary.column("gain"),
        "All (ns)": summary.column("all"),
        "Slack (ns)": summary.column("slack"),
        **placed(report, summary),
        **{labels[name]: summary.column(name) for name in KEYS[by] if name in labels},
    }
    then = answer(path, what_if, factor) if what_if else ""
    before = f"{path.before:,} ns before the first thing on it are not explained." if path.before else ""
    return noted(pa.table(columns), *path_notes(path), then, before, left_out)
