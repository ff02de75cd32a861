"""CPU Hotspots.

## What it shows
Where threads spent their time, by samples of their stacks: in which functions, lines or libraries, Python and native; or how much each
thread, process or NVTX range has. `:tree=top-down` shows who called whom, `:tree=bottom-up` by whom the hot functions were called.

## Columns
- Self (%), Self (ns): while it was the innermost frame. Total (%), Total (ns): while it was anywhere in the stack.
- Samples: how many have it in their stack.
- Name: of the function or library; in a tree indented below its caller (bottom-up: below what it called).
- Where: file and first line of a function of Python, library of a native one; with `:by=line` file and line.
- `:by=thread|process|range`: Time (%), Total (ns), Samples, then which: Host, Rank, PID, TID, Thread, Process, Range.

## How it is computed
Each sample stands for the time to the next one. Native samples are taken where there are any (Python frames are among the native ones),
else Python samples of threads that ran; `:wall` takes the Python samples of threads that waited, too; `:kind=osrt` is the profile of
waiting: where the calls of the C library came from that were longer than --osrt-backtrace-threshold. A function that calls itself counts
once in its Total. Frames are the same function where name, library and (Python) file and first line are; processes are put together.
Rows with less than `:min-percent` of all samples are left out, and with it what a tree has below them.
With --filter-nvtx: what threads did in their own ranges of that name, in all of them or in the one whose index is given. Of a sample
that lasts over an edge, its share.

## Traps
- It is a sample: a row with n samples is off by about the square root of n. Below 10 samples, believe nothing.
- Self adds up to 100 %, Total does not.
- Without :wall, a thread that waits is not there: thread_state_sum and osrt_sum say for what it waits.
- `[no stack]`: the thread was seen, its stack could not be read. Stacks with Python in them begin with Python: what called
  the interpreter is left out. What Python calls in C is in the Total of the Python function, and in its Self where samples
  are Python's alone.
- In a bottom-up tree the Total of a caller is the root's own time when called this way.
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
    """Return the profile; MissingData where there is no sample.

    Args:
        report: the report.
        selection: which part of it.
        by: `function`, `line`, `module`, `thread`, `process` or `range` (the innermost NVTX push/pop range of the thread).
        tree: `flat`, `top-down` or `bottom-up`; by threads, processes or ranges: a tree of functions for each.
        kind: what to look at: samples that are `python`, `native` or `auto`; or `osrt`: the calls of the C library that have a stack; or
            `tasks`: samples of asyncio tasks.
        wall: also of threads that waited (Python samples only).
        only_python: functions of Python alone: what they call in native code is their own time.
        depth: levels of the tree; 0: all.
        min_percent: leave out what has less of all samples.
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
