"""Python Hotspots.

## What it shows
Python functions with the most time, over all threads: by samples of stacks if there are any, or
else by traced calls.

## Columns
- Self (%), Self (ns): time in the function itself, including C code that it calls. Total (%), Total
  (ns): with all functions that it calls.
- Samples: number of samples with it in their stack; or Calls: number of calls.
- Threads: number of threads that ran it.
- Name: the function. Where: its file and first line; with `:by=line`, the line that ran.

The program's own functions come first, largest Total first. Their files are neither in
`site-packages` nor in the standard library. Then follow all others, largest Self first.

## How it is computed
From samples, as cpu_hotspots:only-python: the Python frames of native samples if there are any, or
else Python samples of running threads; `:wall` adds those of waiting threads. In a report without
samples, or with `:calls`, from `python_calls`: traced functions, such as those in a PyTorch
profiler trace with stacks. A function that calls itself counts once in its Total. Percentages are
of all samples, or of the time in which any traced function was running on a thread. With
--filter-nvtx, only time inside the thread's own ranges of that name counts. Functions with less
than `:min-percent` of the time, in Self and Total, are left out.

## Traps
- Samples show where time goes. Traced calls show every call, and make short ones longer.
- Total does not add up to 100 %. Parallel threads may have more than the length of the run.
- A traced call that waits counts with its whole wait: check Self of functions that end in `wait`,
  `acquire` or `poll` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.own_code import is_own_code
from warplens.analysis.cpu.samples import kind_of
from warplens.analysis.cpu.stacks import flat, top_down
from warplens.analysis.ranges.nested import nested
from warplens.analysis.ranges.phases import said
from warplens.errors import MissingData
from warplens.stats.base import noted, one_of, titled
from warplens.stats.hotspots import SampleProfile, texts

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(
    report: Report,
    selection: Selection,
    *,
    by: str = "function",
    calls: bool = False,
    wall: bool = False,
    min_percent: float = 0.5,
) -> pa.Table:
    """Return the functions or lines, those of the program first.

    Raises MissingData if there are neither samples nor traced calls.

    Args:
        report: the report.
        selection: the part to use.
        by: `function` or `line`: one row for each; traced calls have no lines.
        calls: use traced calls even if there are samples.
        wall: include samples of waiting threads (Python samples only).
        min_percent: leave out rows below this share of all time.
    """
    one_of("by", by, ("function", "line"))
    if not report.tables["samples"] and not report.tables["python_calls"]:
        raise MissingData(
            "does not contain Python samples or calls; record with --sample=process-tree, or "
            "--python-functions-trace."
        )
    if calls or not report.tables["samples"]:
        profile_table, what = _by_calls(report, selection, min_percent), "traced calls"
        by = "function"
    else:
        kind = kind_of(report, wall=wall)
        profile = SampleProfile.of(report, selection, "thread", kind=kind, wall=wall, only_python=True)
        profile_table, what = (
            _by_samples(profile, by, min_percent),
            f"{int(profile.weights.count.sum()):,} {kind} samples",
        )
    table = noted(profile_table, f"By {what}.", said(report, selection))
    return titled(table, "Python Lines") if by == "line" else table


def _by_samples(profile: SampleProfile, by: str, min_percent: float) -> pa.Table:
    each = flat(top_down(profile.frames, by, profile.weights))  # of each thread
    # `flat` has a row for each function or line and thread; here the threads of one are added up.
    labels, first, code = np.unique(each.label, return_index=True, return_inverse=True)
    own, total, samples = (np.zeros(len(labels), np.int64) for _ in range(3))
    for sums, values in ((own, each.own), (total, each.total), (samples, each.samples)):
        np.add.at(sums, code, values)
    rows = np.flatnonzero(total >= profile.weight * min_percent / 100)
    is_own = np.array([is_own_code(profile.frames.frame(place)) for place in each.example[first].tolist()])
    rows = rows[np.lexsort((labels[rows], -total[rows], -np.where(is_own, total, own)[rows], ~is_own[rows]))]
    names, places = texts([profile.frames.frame(place) for place in each.example[first[rows]].tolist()], by)
    every = max(profile.weight, 1)
    return pa.table(
        {
            "Self (%)": 100.0 * own[rows] / every,
            "Total (%)": 100.0 * total[rows] / every,
            "Self (ns)": own[rows],
            "Total (ns)": total[rows],
            "Samples": samples[rows],
            "Threads": np.bincount(code, minlength=len(labels))[rows],
            "Name": names,
            "Where": places,
        }
    )


def _by_calls(report: Report, selection: Selection, min_percent: float) -> pa.Table:
    keys = ("kind", "name", "file", "line")
    apart = nested(report, selection, "python_calls", keys=keys, per=("thread",))
    apart = apart.filter(pc.equal(apart.column("kind"), "function"))
    if not apart.num_rows:
        raise MissingData(f"does not contain calls of Python functions{selection.place(report)}.")
    rows = apart.group_by(list(keys), use_threads=False).aggregate(
        [("own", "sum"), ("whole", "sum"), ("count", "sum"), ("thread", "count")]
    )
    own, whole = (np.asarray(rows.column(f"{name}_sum").to_numpy(), np.int64) for name in ("own", "whole"))
    every = max(int(own.sum()), 1)
    places = zip(rows.column("file").to_pylist(), rows.column("line").to_pylist(), strict=True)
    table = pa.table(
        {
            "Self (%)": 100.0 * own / every,
            "Total (%)": 100.0 * whole / every,
            "Self (ns)": own,
            "Total (ns)": whole,
            "Calls": rows.column("count_sum"),
            "Threads": rows.column("thread_count"),
            "Name": rows.column("name"),
            "Where": pa.array(
                [f"{file}:{line}" if file and line else file or "" for file, line in places], pa.string()
            ),
        }
    )
    kept = table.filter(pa.array(np.maximum(own, whole) >= every * min_percent / 100))
    return kept.sort_by(
        [
            ("Self (ns)", "descending"),
            ("Total (ns)", "descending"),
            ("Name", "ascending"),
            ("Where", "ascending"),
        ]
    )
