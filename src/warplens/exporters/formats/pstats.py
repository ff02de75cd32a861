"""A cProfile profile, for `pstats`, snakeviz, gprof2dot, tuna and IDEs.

## What maps to what
- A function `(FILE, LINE, NAME)`: a Python function with its first line. For native code
  `(LIBRARY, 0, NAME)`, with `~` as file if the library is unknown.
- From samples: `tottime` is the time of samples that ended in the function, `cumtime` the time of
  all samples with it in their stack. `ncalls` is not the number of calls but the **number of
  samples** with it in their stack. For a function that calls itself it is `N/M`: active N times in
  M samples.
- From traced calls (with `:calls`, or if a report has no samples): `ncalls` is the number of calls.
- Callers: for each caller the samples or calls, `tottime` and `cumtime` of the function below it.
- All threads and processes are combined; `--filter-time` and `--filter-nvtx` select a part.

## What is lost
See LOSES. Times are seconds, as floating point numbers.
"""

from __future__ import annotations

import marshal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.ranges.nested import outermost, places
from warplens.analysis.ranges.phases import chosen
from warplens.disk.files import output
from warplens.exporters.profiles.pstats_entries import Entries
from warplens.exporters.profiles.stacks import ALL, Labels, sums, wanted

if TYPE_CHECKING:
    from warplens.analysis.cpu.frames import Frame
    from warplens.exporters.losses import Loss
    from warplens.exporters.profiles.pstats_entries import Name
    from warplens.report import Report
    from warplens.report.selection import Selection

SUFFIX = ".pstats"
LOSES: tuple[Loss, ...] = (
    "stacks: a cProfile profile has only the direct callers of each function",
    "times, threads, lines and exception state of samples",
    "calls: unless functions were traced, `ncalls` is the number of samples",
    "everything except samples of one kind: `:kind=python` or `:kind=native` selects it, `:wall` adds waiting threads",
)
_MARSHAL = 4  # what Python 3.4 and later read


def write(
    report: Report,
    out: Path,
    *,
    kind: str = "auto",
    wall: bool = False,
    calls: bool = False,
    selection: Selection | None = None,
) -> None:
    """Write the profile.

    Args:
        report: the report.
        out: the file.
        kind: samples to export: python, native, auto (Python ones if there are any), osrt (C
            library calls that have a stack) or tasks (of asyncio).
        wall: include Python samples of waiting threads.
        calls: use traced calls even if there are samples.
        selection: the part to export.
    """
    traced = report.tables["python_calls"] > 0 and (calls or not report.tables["samples"])
    entries = (
        _by_calls(report, selection or ALL) if traced else _by_samples(report, selection, kind, wall=wall)
    )
    with output(out) as file:
        file.write(marshal.dumps(entries.stats(), _MARSHAL))


def _by_samples(report: Report, selection: Selection | None, kind: str, wall: bool) -> Entries:
    if kind == "auto" and report.sql("SELECT 1 FROM samples WHERE kind = 'python' LIMIT 1").num_rows:
        kind = "python"  # readers of such files look for Python functions
    which = wanted(report, kind, wall)
    labels, entries = Labels.of(report, lines=False), Entries()
    rows = sums(report, selection, which).group_by("stack").aggregate([("count", "sum"), ("weight", "sum")])
    stacks = labels.frames.positions(rows.column("stack")).tolist()
    for stack, count, weight in zip(
        stacks, rows.column("count_sum").to_pylist(), rows.column("weight_sum").to_pylist(), strict=True
    ):
        entries.sampled(
            [_name(labels.frames.frame(place)) for place in labels.positions(stack)], count, weight
        )
    return entries


def _by_calls(report: Report, selection: Selection) -> Entries:
    """Count the calls that overlap the selection, whole.

    A call that was going on when its caller was not recorded has none.
    """
    relation = chosen(report, selection, "python_calls")
    columns = 'id, parent, "end" - "start" AS length, name, file, line'
    rows = report.sql(f"SELECT {columns} FROM {relation} WHERE kind = 'function' ORDER BY id")
    ids, length = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("id", "length"))
    above = places(ids, np.asarray(rows.column("parent").fill_null(-1).to_numpy(), np.int64))
    own = length.copy()
    np.subtract.at(own, above[above >= 0], length[above >= 0])
    texts = (rows.column(name).to_pylist() for name in ("file", "line", "name"))
    names = [(file or "~", line or 0, name) for file, line, name in zip(*texts, strict=True)]
    codes: dict[Name, int] = {}
    first = outermost(above, np.array([codes.setdefault(name, len(codes)) for name in names], np.int64))
    entries = Entries()
    for name, parent, *facts in zip(
        names, above.tolist(), own.tolist(), length.tolist(), first.tolist(), strict=True
    ):
        entries.called(name, names[parent] if parent >= 0 else None, *facts)
    return entries


def _name(frame: Frame) -> Name:
    if frame.kind == "python":
        return frame.file or "~", frame.first_line or 0, frame.function
    return frame.module or "~", 0, frame.function
