"""Critical Path Summary.

## What it shows
The work that decides how long the run takes: the longest chain from the first to the last operation
in which each step waited for the one before, summed by kind and name. Work on the path is worth
making faster. Work off the path may take longer, up to its slack, without delaying the end.
`:what-if=NAME:factor=0.5` predicts the total time if something took half as long.

## Columns
- Time (%), Time (ns): time on the path. All rows add up to the whole time, except for the
  unexplained time that a note names.
- Pieces: number of stretches on the path.
- Gain (ns): how much shorter the run would be if this took no time. It is less than Time if another
  chain then decides.
- All (ns): total time of these operations, on and off the path.
- Slack (ns): of the operations off the path, the shortest delay that would put one on the path.
- Kind: `CPU` (the host between its calls), `CUDA API`, `kernel`, `communication`, `memcpy`,
  `memset`, `graph`, `launch latency` (from call to operation), `stream gap` (between operations of
  a stream), `sync return` (from the end of work to the end of the call that waited for it),
  `full queue` (from when the queue had room to the end of the launch), `before` (before work that
  began for an unknown cause).
- Name: kernel, copy or call; for `CPU` the innermost NVTX range, `domain:name`.
- Rank, PID, TID, Thread, Device, Stream: each is shown only if rows differ in it. With `:by=range`,
  Range is the range around the launch or the call.

## How it is computed
The graph consists of moments (start and end of each CUDA call and each GPU operation) and of what
each waits for: its thread, its call, its stream, an event, work that a call synchronizes with, the
other ranks of a collective. [Full definition](../explain/critical-path.md). With a filter or
`:step=3`, only that time counts, and operations across its edges are cut.

## Traps
- The path knows the dependencies that CUDA and the framework report. A thread that waits for
  another thread's lock, or for a file, counts as `CPU` time.
- Gains do not add up: after one change, the path is a different one.
- A what-if cannot tell which other launches would then find their queue full.
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
    """Return the summary; raises MissingData if there is no CUDA data.

    Args:
        report: the report.
        selection: the part to use.
        by: `name`, `kind`, `place` (thread or stream) or `range` (NVTX): one row for each.
        step: number of the only training step to use, from 0.
        what_if: kind, kernel, call or NVTX range to change; `*` stands for any text.
        factor: its new time divided by the old one; 0: no time.
        gains: number of rows to compute the gain for.
        rows: maximum number of rows; 0: all.
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
