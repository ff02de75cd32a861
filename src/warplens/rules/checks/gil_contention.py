"""Python threads that wait for the GIL.

## What it looks for
Threads that held the global lock while others waited for it, for more than 5 % of the judged time.
If there is a GPU, or the program has steps, only waits of the thread that launches or runs the
steps count.

## Why it costs time
Only one thread at a time runs Python. A thread that wants the lock waits until the holder releases
it: 5 ms (the switch interval) if the holder runs Python, but until the end of the call if it is in
C code that keeps the lock. Each wait delays the next work of the waiting thread, such as launches
for the GPU.

## What to do
Long holds: let the C code release the lock (`Py_BEGIN_ALLOW_THREADS`, `nogil` in Cython,
`py::gil_scoped_release` in pybind11, `ctypes.CDLL` instead of `PyDLL`). Many short holds: move that
thread's work into a process (`num_workers` of a DataLoader, `multiprocessing`), or into libraries
that release the lock, such as NumPy. Threads beside an event loop (FastAPI endpoints with `def`
instead of `async def`; `run_in_executor`): make short handlers `async def`, so that no call moves
to a thread and back.

## When it does not apply
If the waiting threads have nothing urgent to do. If there are fewer CPUs than threads: without the
lock they would wait for a CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import capital, ceiling, edges, idle, leading, needed, numbers, rows, threads
from warplens.rules.stacks import StackPlaces

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/c-api/init.html#releasing-the-gil-from-extension-code"
IDLE = ("host-bound", "head")
_MOST = 5  # threads that are looked at closely
_SWITCH = 5_000_000  # ns after which a thread that runs Python must let go


def check(report: Report, selection: Selection, *, least: float = 5) -> list[Finding]:
    """Return a finding for each thread that others waited for.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time that others must have waited for it.
    """
    needed(report, selection, "gil", what="Python GIL data", source="gil")
    begin, end = edges(report, selection)
    pending = rows(report, selection, "id, process, interpreter, thread", table="gil", where="state = 'wait'")
    holds_of_lock = rows(
        report, selection, "process, interpreter, thread", table="gil", where="state = 'hold'"
    )
    gpu = idle(report, selection)
    only = (
        list(leading(report, selection).values()) if gpu is not None or _stepping(report, selection) else None
    )
    process, interpreter, waiter, start, finish = (
        numbers(pending, name) for name in ("process", "interpreter", "thread", "start", "end")
    )
    key = numbers(holds_of_lock, "process") * 4096 + numbers(holds_of_lock, "interpreter")
    names = threads(report)
    findings = []
    for holder in _suspects(holds_of_lock, Cover(start, finish)):
        mine = numbers(holds_of_lock, "thread") == holder
        holds = Cover(numbers(holds_of_lock, "start")[mine], numbers(holds_of_lock, "end")[mine])
        others = (process * 4096 + interpreter == key[mine][0]) & (waiter != holder)
        if only is not None:
            others &= np.isin(waiter, only)
        lost = holds.within(start, finish) * others
        places = np.flatnonzero(lost)
        if not len(places):
            continue
        waits = Cover(start[places], finish[places]).both(holds)
        if waits.total * 100 < least * (end - begin):
            continue
        waited = waits if gpu is None else waits.both(gpu)
        if not waited.total:
            continue
        worst = int(max(lost[waiter == thread].sum() for thread in np.unique(waiter[places])))
        findings.append(
            _finding(
                names,
                holder,
                holds,
                waits=waits,
                bound=ceiling(report, selection, waits),
                estimate=min(worst, waited.total),
                evidence=_evidence(pending, places, lost, names=names),
                number=len(places),
                loop=_beside_a_loop(report, [holder, *np.unique(waiter[places]).tolist()]),
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _suspects(lock_holds: pa.Table, waits: Cover) -> list[int]:
    """Return the threads that held the lock longest while anybody waited."""
    thread, codes = np.unique(numbers(lock_holds, "thread"), return_inverse=True)
    # For each holding thread: the time of its holds in which some other thread waited.
    together = np.bincount(
        codes.ravel(), waits.within(numbers(lock_holds, "start"), numbers(lock_holds, "end")), len(thread)
    )
    return [int(thread[place]) for place in np.argsort(-together, kind="stable")[:_MOST] if together[place]]


def _stepping(report: Report, selection: Selection) -> bool:
    try:
        return bool(steps(report, selection).num_rows)
    except MissingData:
        return False


def _finding(
    names: dict[int, str],
    holder: int,
    holds: Cover,
    waits: Cover,
    bound: int,
    estimate: int,
    evidence: tuple[Evidence, ...],
    number: int,
    loop: bool,
) -> Finding:
    name = names.get(holder, "a thread")
    inside = holds.within(waits.start, waits.end)
    lengths = holds.end - holds.start
    long = lengths > 2 * _SWITCH
    in_long = waits.both(Cover(holds.start[long], holds.end[long])).total
    longest = (
        duration(int(lengths[holds.within(holds.start, holds.end) > 0].max())) if len(inside) else "0 ns"
    )
    if in_long * 2 > waits.total:
        kind = (
            f"It holds the lock for up to {longest} at a time. Python code would release it after "
            "5 ms: this is C code that keeps the lock."
        )
        fix = (
            "Release the lock in that C code (Py_BEGIN_ALLOW_THREADS, nogil, gil_scoped_release, "
            "CDLL instead of PyDLL)."
        )
    elif loop:
        kind = (
            "An event loop and the threads that it gives its calls to hand the lock to each other: "
            "each call waits for it twice."
        )
        fix = (
            "Make short handlers `async def` (endpoints of FastAPI, Starlette) or call them on the "
            "loop: no thread, no hand-over. Keep blocking code in a thread, and move long "
            "computations into another process; more server processes use more CPUs."
        )
    else:
        kind = (
            "It holds the lock for short times, again and again: it runs Python, and so do those that wait."
        )
        fix = "Move its work into a separate process, or into code that releases the lock."
    return Finding(
        rule="gil_contention",
        subject=name,
        title=f"{capital(name)} held the GIL while others waited, {duration(waits.total)} in all",
        cause=kind,
        fix=fix,
        evidence=evidence,
        occurrences=number,
        bound=bound,
        estimate=estimate,
        confidence="high" if in_long * 2 > waits.total else "medium",
        claim=waits,
    )


def _beside_a_loop(report: Report, threads_of: list[int]) -> bool:
    """Whether one of these threads runs an event loop, and another runs calls for it, by their samples."""
    listed = ", ".join(map(str, threads_of))
    seen = report.sql(
        f"SELECT DISTINCT thread, stack FROM samples WHERE kind::VARCHAR = 'python' AND thread IN ({listed})"
    )
    stacks = StackPlaces(report)
    runs: dict[bool, set[int]] = {True: set(), False: set()}  # a loop; calls for one
    for row in seen.to_pylist():
        if (loop := stacks.place(row["stack"]).in_loop) is not None:
            runs[loop].add(row["thread"])
    return bool(runs[True] and runs[False] - runs[True])


def _evidence(
    waits: pa.Table, places: Int64Array, lost: Int64Array, names: dict[int, str]
) -> tuple[Evidence, ...]:
    best = places[np.argsort(-lost[places], kind="stable")][:50]
    return most(
        Evidence(
            table="gil",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=f"{names.get(row['thread'], 'a thread')} waits for the GIL",
            process=row["process"],
            thread=row["thread"],
        )
        for row in waits.take(best).to_pylist()
    )
