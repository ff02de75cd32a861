"""The account of a recording: where the time of its run went, each nanosecond once.

Or the time of one iteration of its main loop.

The time is that of one GPU, where the program uses one, else of the thread that leads: see `analysis.steps.leading`. Two accounts that
are about the same thing show by their difference why one run takes longer than the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.comparison.gpu_time import gpu_time
from warplens.analysis.comparison.host_time import CauseTime, host_time, stretches_of
from warplens.analysis.cpu.culprits import API, FUNCTION, GC, GIL, IMPORT, NATIVE, OS
from warplens.analysis.cpu.thread_time import thread_times
from warplens.analysis.gpu.ops import busy, during
from warplens.analysis.steps.leading import leading
from warplens.analysis.steps.loops import MainLoop, main_loop
from warplens.analysis.steps.steps import base_name, steps
from warplens.errors import MissingData
from warplens.report.selection import Selection

if TYPE_CHECKING:
    from warplens.report.report import Report

_MOST = 1 << 20  # rows that a thread's time is divided by: they take 500 bytes each
_ALIKE = 0.9
_MOST_OPERATIONS = 1 << 22
_DIVIDED = ("nvtx_ranges", "python_calls", "osrt", "cuda_api", "thread_states")
_OPERATIONS = ("kernels", "memcpys", "memsets", "graphs")
# What only a recording of it can have: the kind of time, the table that it comes from, and the source that fills the table.
RECORDED = {
    GC: ("gc", "gc"),
    GIL: ("gil", "gil"),
    IMPORT: ("imports", "import"),
    OS: ("osrt", "osrt"),
    API: ("cuda_api", "cuda"),
    FUNCTION: ("samples", ""),
    NATIVE: ("samples", ""),
}


@dataclass(frozen=True)
class AccountEntry:
    """Time of one cause, ns, its variance (ns²), and what in it took most."""

    ns: float
    variance: float
    detail: str


@dataclass(frozen=True)
class Account:
    """`entries`: time by kind and name; together they are `whole` (ns).

    `per`: what that is the time of: `run`, `iteration`, or the name of its steps; `units`: how many of them there are.
    """

    where: str
    per: str
    units: int
    whole: float
    entries: Mapping[tuple[str, str], AccountEntry]


@dataclass(frozen=True)
class Subject:
    """Subject of an account: a thread of a process, and the GPU that the process uses most.

    None: it uses none.
    """

    process: int
    thread: int
    device: int | None


def loop_of(report: Report, selection: Selection, name: str | None) -> MainLoop | None:
    """Return the main loop, else the steps of a program that are too few or too small for one.

    `name`: of the ranges that are steps.

    None if there is neither. Raises MissingData if no range has the name.
    """
    loop = main_loop(report, selection) if name is None else None
    if loop is not None:
        return loop
    try:
        rows = steps(report, selection, name)
    except MissingData:
        if name is not None:
            raise
        return None
    process, start, end = (
        np.asarray(rows.column(column).to_numpy(), np.int64) for column in ("process", "start", "end")
    )
    known, number = np.unique(process, return_counts=True)
    key = int(known[np.argmax(number)])
    mine = process == key
    starts = start[mine]
    called = base_name(rows.column("name")[int(np.argmax(mine))].as_py())
    usual = int(np.median(end[mine] - starts))
    return MainLoop(
        int(starts[0]), int(end[mine][-1]), key, starts=starts, usual=usual, skipped=0, name=called
    )


def subject(report: Report, selection: Selection, loop: MainLoop | None) -> Subject | None:
    """Return what leads a run, which has the `loop`; None if the report has no threads."""
    leaders = leading(report, selection)
    gpus = sorted(busy(report, selection).to_pylist(), key=lambda gpu: -gpu["busy"])
    if loop is not None:
        process = loop.process
    elif gpus:
        process = gpus[0]["process"]
    else:
        main = next((time for time in thread_times(report) if time.main), None)
        if main is not None:
            return Subject(main.process, main.thread, None)
        process = _longest(report, leaders)
    if process not in leaders:
        return None
    own = [gpu for gpu in gpus if gpu["process"] == process]
    # GPUs that do the same work are busy for about as long: the first of them, on both sides.
    alike = [gpu["device"] for gpu in own if gpu["busy"] >= _ALIKE * own[0]["busy"]]
    return Subject(process, leaders[process], min(alike, default=None))


def _longest(report: Report, leaders: Mapping[int, int]) -> int:
    rows = report.sql(
        'SELECT process, "end" - "start" AS ns FROM processes ORDER BY ns DESC, process'
    ).to_pylist()
    return next((row["process"] for row in rows if row["process"] in leaders), -1)


def kernels_in(report: Report, loop: MainLoop) -> float:
    """Return how many kernels and graphs an iteration of a loop has."""
    inside = Selection(time=(loop.begin - report.origin, loop.end - report.origin))
    where = f"process = {loop.process} AND {during(report, inside)}"
    (row,) = report.sql(
        f"SELECT (SELECT count(*) FROM kernels WHERE {where}) + (SELECT count(*) FROM graphs WHERE {where}) AS number"
    ).to_pylist()
    return float(row["number"]) / loop.iterations


def divisible(report: Report) -> bool:
    """Return whether a report is small enough for its time to be divided."""
    return (
        sum(report.tables[name] for name in _DIVIDED) <= _MOST
        and sum(report.tables[name] for name in _OPERATIONS) <= _MOST_OPERATIONS
    )


def looked_at(report: Report, kind: str) -> bool:
    """Return whether a recording would have seen time of a kind."""
    table, source = RECORDED.get(kind, ("", ""))
    on = any(manifest.sources.get(source, {}).get("on") for manifest in report.manifests)
    return not table or bool(report.tables[table]) or on


def account(
    report: Report, selection: Selection, of: Subject, loop: MainLoop | None, *, gpu: bool
) -> Account | None:
    """Return the account of the selection, or of one iteration of `loop`.

    None if it lasts no time.

    `gpu`: of the GPU of `of`, else of its thread.
    """
    begin, end = selection.window(report) or report.span
    if loop is not None:
        begin, end = loop.begin, loop.end
    elif selection == Selection():
        (row,) = report.sql(f'SELECT "start", "end" FROM processes WHERE process = {of.process}').to_pylist()
        begin, end = max(begin, row["start"]), min(end, row["end"])
    if end <= begin:
        return None
    if gpu and of.device is not None:
        part = Selection(time=(begin - report.origin, end - report.origin))
        spent = gpu_time(report, part, (of.process, of.device), thread=of.thread)
        where = f"GPU {of.device}"
    else:
        spent = host_time(report, stretches_of(of.thread, np.array([begin]), np.array([end])))
        where = _called(report, of)
    units = 1 if loop is None else loop.iterations
    return Account(
        where,
        "run" if loop is None else loop.name or "iteration",
        units,
        whole=(end - begin) / units,
        entries=_entries([*spent], units),
    )


def _entries(spent: list[CauseTime], units: int) -> dict[tuple[str, str], AccountEntry]:
    sums: dict[tuple[str, str], float] = {}
    variances: dict[tuple[str, str], float] = {}
    details: dict[tuple[str, str], dict[str, int]] = {}
    for one in spent:
        key = one.kind, one.name
        sums[key] = sums.get(key, 0.0) + one.ns
        variances[key] = variances.get(key, 0.0) + one.variance
        own = details.setdefault(key, {})
        own[one.detail] = own.get(one.detail, 0) + one.ns
    return {
        key: AccountEntry(ns / units, variances[key] / units**2, _largest(details[key]))
        for key, ns in sums.items()
    }


def _largest(details: Mapping[str, int]) -> str:
    """Return the detail with most time.

    One that says nothing counts only if there is no other.
    """
    return max(details, key=lambda text: (bool(text), details[text]))


def _called(report: Report, of: Subject) -> str:
    text = f"""SELECT t.name, t.tid = p.pid AS main, p.name AS program FROM threads t JOIN processes p USING (process)
               WHERE t.thread = {of.thread}"""
    row = next(iter(report.sql(text).to_pylist()), {"name": None, "main": True, "program": None})
    thread = "the main thread" if row["main"] else f"thread {row['name']}" if row["name"] else "a thread"
    return f"{thread} of {row['program']}" if row["program"] else thread
