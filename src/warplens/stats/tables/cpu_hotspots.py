"""CPU Hotspots.

## What it shows
Where threads spent their time, by samples of their stacks: functions, lines or libraries, Python
and native. Or the time of each thread, process or NVTX range. `:tree=top-down` shows callers above
the functions that they called, `:tree=bottom-up` shows hot functions above their callers.

## Columns
- Self (%), Self (ns): time in which it was the innermost frame. Total (%), Total (ns): time in
  which it was anywhere in the stack.
- Samples: number of samples with it in their stack.
- Name: function or library. In a tree it is indented below its caller (bottom-up: below the
  function that it called).
- Where: file and first line of a Python function, library of a native one. With `:by=line`: file
  and line.
- With `:by=thread|process|range`: Time (%), Total (ns), Samples, then Host, Rank, PID, TID, Thread,
  Process or Range.

## How it is computed
Each sample stands for the time until the next one. Native samples are used if there are any; they
contain the Python frames. Otherwise Python samples of running threads are used; `:wall` adds those
of waiting threads. `:kind=osrt` profiles waiting: the callers of C library calls that were longer
than --osrt-backtrace-threshold.

A function that calls itself counts once in its Total. Frames are the same function if name, library
and (in Python) file and first line agree. All processes are combined. Rows with less than
`:min-percent` of all samples are left out, together with the rows below them in a tree.

With --filter-nvtx, samples count that a thread took inside its own ranges of that name (all of
them, or the one whose index is given). A sample that crosses an edge counts with its share inside.

## Traps
- Samples are statistics: a row with n samples is off by about the square root of n. Do not trust
  rows below 10 samples.
- Self adds up to 100 %, Total does not.
- Without `:wall`, waiting threads are missing. thread_state_sum and osrt_sum show what they wait
  for.
- `[no stack]`: the thread was sampled, but its stack could not be read.
- Stacks with Python frames begin at the first Python frame, without the callers of the interpreter.
  C code that Python calls counts in the Total of the Python function; with Python samples only,
  also in its Self.
- In a bottom-up tree, the Total of a caller is the root's own time when called on this path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.cpu.samples import kind_of
from warplens.analysis.ranges.phases import said
from warplens.stats.base import noted, one_of, titled
from warplens.stats.hotspots import FRAMES, GROUPS, TREES, SampleProfile, as_tree, by_frame, by_group

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection


def table(
    report: Report,
    selection: Selection,
    *,
    by: str = "function",
    tree: str = "flat",
    kind: str = "auto",
    wall: bool = False,
    only_python: bool = False,
    depth: int = 0,
    min_percent: float = 0.5,
) -> pa.Table:
    """Return the profile; raises MissingData if there is no sample.

    Args:
        report: the report.
        selection: the part to use.
        by: `function`, `line`, `module`, `thread`, `process` or `range` (the thread's innermost
            NVTX push/pop range): one row for each.
        tree: `flat`, `top-down` or `bottom-up`; with threads, processes or ranges: a tree of
            functions for each.
        kind: samples to use: `python`, `native` or `auto` (native ones if there are any); `osrt`: C
            library calls that have a stack; `tasks`: samples of asyncio tasks.
        wall: include samples of waiting threads (Python samples only).
        only_python: list Python functions only; native code that they call counts as their own
            time.
        depth: number of tree levels; 0: all.
        min_percent: leave out rows below this share of all samples.
    """
    one_of("by", by, (*FRAMES, *GROUPS))
    one_of("tree", tree, TREES)
    wanted = kind_of(report, kind, wall=wall)
    profile = SampleProfile.of(report, selection, by, kind=wanted, wall=wall, only_python=only_python)
    least = profile.weight * min_percent / 100
    if tree != "flat":
        profile_table = as_tree(report, profile, by, tree=tree, depth=depth, least=least)
    else:
        profile_table = (
            by_group(report, profile, by, least=least) if by in GROUPS else by_frame(profile, by, least)
        )
    number = f"{int(profile.weights.count.sum()):,}"
    what = (
        f"{number} {wanted} samples of threads that ran{' or waited' if wall else ''}"
        if wanted != "osrt"
        else f"{number} OS calls"
    )
    left_out = (
        f"less than {min_percent:g} % of them is left out; `:min-percent=0` has all"
        if min_percent > 0
        else ""
    )
    table = noted(profile_table, "; ".join(filter(None, (what, left_out))) + ".", said(report, selection))
    title = "Where Threads Waited" if wanted == "osrt" else "Where Threads Were" if wall else ""
    return titled(table, title) if title else table
