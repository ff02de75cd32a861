"""Threads that wait for each other in a busy loop.

## What it looks for
Native samples that ended in the OpenMP runtime (libgomp, libiomp5, libomp) on at least two threads
of a process, in the waiting loop of OpenBLAS, or in a spin lock: at least a tenth of all CPU time.
It costs wall time if the leading thread spins itself, sleeps in the same calls although one thread
would be faster, or lacks a CPU, for 5 % of the judged time in total. Otherwise only CPU time is
lost, and the finding has no price. Needs native samples (perf events).

## Why it costs time
OpenMP threads check for work in a loop for milliseconds before they sleep, so that the next
parallel loop starts sooner. If there are more threads than CPUs, or other programs use the CPUs,
spinning threads displace threads with work. Very short loops never end sooner with more threads.

## What to do
Set `OMP_NUM_THREADS` (`OPENBLAS_NUM_THREADS`, `torch.set_num_threads`) to at most the number of
free CPUs, and to 1 in each of several processes. If threads wait long, let them sleep with
`OMP_WAIT_POLICY=passive` (`KMP_BLOCKTIME=0` for the runtimes of Intel and LLVM).

## When it does not apply
If CPUs are free and the loops follow each other closely, spinning is faster than sleeping. If one
thread has more work than the others, they wait for it in any case, and the work must be divided
better.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import nearest
from warplens.analysis.cpu.thread_time import of_kind, own_code, read_samples
from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray, Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import edges, leading, numbers, rows
from warplens.rules.machine import cpus, loads
from warplens.rules.python_time import python_time

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html"
_MOSTLY = 0.5
_SHORTAGE = 0.01  # share of the time from which on the leading thread lacks a CPU


@dataclass(frozen=True)
class _Kind:
    """Code that spins: functions of a library, and what it calls to give the CPU away.

    Without one, of any library.
    """

    name: str
    library: str
    function: str
    variable: str


_KINDS = (
    _Kind("OpenMP", r"lib(gomp|iomp5|omp)\b.*", ".*", variable="OMP_NUM_THREADS"),
    _Kind(
        "OpenBLAS",
        r"lib(scipy_)?openblas.*",
        "blas_thread_server|exec_blas.*|blas_thread.*",
        variable="OPENBLAS_NUM_THREADS",
    ),
    _Kind("a spin lock", "", r"(__)?pthread_spin_lock", variable=""),
)
_BELOW = r"libc[.-].*|libpthread.*|\[kernel\]|\[vdso\]|linux-vdso.*"
_YIELDS = r"(__)?(x64_sys_|arm64_sys_)?sched_yield"


def check(report: Report, selection: Selection, *, share: float = 10, least: float = 5) -> list[Finding]:
    """Return a finding for each kind of code that spins.

    Args:
        report: the report.
        selection: the part to use.
        share: percent of all sampled CPU time that it must take.
        least: percent of the judged time that it must cost to have a price.
    """
    begin, end = edges(report, selection)
    native = of_kind(read_samples(report), "native") if report.tables["samples"] else None
    if native is None or not native.num_rows:
        raise MissingData(f"does not contain native samples{selection.place(report)}.")
    start, weight = (np.asarray(native[name].to_numpy(), np.int64) for name in ("start", "weight"))
    native = native.filter(pa.array((start < end) & (start + weight > begin)))
    findings = []
    for kind in _KINDS if native.num_rows else ():
        spins = _spins(own_code(report).frames, native, kind)
        finding = _finding(report, selection, kind, native=native, spins=spins, share=share, least=least)
        findings += [finding] if finding is not None else []
    return findings


def _spins(frames: FrameTable, native: pa.Table, kind: _Kind) -> BoolArray:
    """Return which samples ended in code of a kind."""
    stack = frames.positions(native["stack"])
    if not kind.library:
        return _matching(frames, "function", kind.function)[stack]
    leaf = nearest(frames.parent, ~_matching(frames, "module", _BELOW))[stack]
    yields = nearest(frames.parent, _matching(frames, "function", _YIELDS))[stack] >= 0
    inside = (leaf >= 0) & _matching(frames, "module", kind.library)[leaf]
    inside &= _matching(frames, "function", kind.function)[leaf] | yields
    # one thread alone has nobody to wait for
    process, thread = (np.asarray(native[name].to_numpy(), np.int64) for name in ("process", "thread"))
    owner = process[inside][np.unique(thread[inside], return_index=True)[1]]
    own, counts = np.unique(owner, return_counts=True)
    return np.asarray(inside & np.isin(process, own[counts > 1]), bool)


def _matching(frames: FrameTable, column: str, pattern: str) -> BoolArray:
    """Return of each frame whether its text in a column matches.

    The last element is that of no frame.
    """
    texts, code = frames.texts(column)
    matches: Callable[[str], object] = re.compile(pattern).fullmatch
    return np.array([bool(matches(text.rpartition("/")[2])) for text in texts] + [False], bool)[code]


@dataclass(frozen=True)
class _Lost:
    """The losses of a process's leading thread, ns.

    Without the CPUs that others spun on, spinning, asleep in the same calls.

    `work`: CPU time of the process in which nobody spun; `cover`: when it lost time.
    """

    lacked: int
    spun: int
    slept: int
    work: int
    cover: Cover

    @property
    def bound(self) -> int:
        """What can be won: its sleep only where one thread would do all of the work sooner."""
        awake = self.lacked + self.spun
        return awake + self.slept if awake + self.slept > self.work else awake


def _lost(report: Report, selection: Selection, native: pa.Table, spins: BoolArray) -> _Lost:
    """Return what was lost in the process that lost most."""
    states = (
        {load.thread: load.runnable for load in loads(report, selection)}
        if report.tables["thread_states"]
        else {}
    )
    process, thread, weight = (
        np.asarray(native[name].to_numpy(), np.int64) for name in ("process", "thread", "weight")
    )
    leaders = leading(report, selection)
    every = []
    for own in np.unique(process[spins]).tolist():
        leader = leaders.get(own, -1)
        mine = thread == leader
        slept, *sleep = _slept(
            report, selection, native.filter(pa.array(mine)), spins=spins[mine], leader=leader
        )
        work = int(weight[(process == own) & ~spins].sum())
        start = np.asarray(native["start"].to_numpy(), np.int64)[spins & mine]
        spun = start, start + weight[spins & mine]
        # a thread takes a CPU from the leading thread for no longer than it spins
        lacked = min(states.get(leader, 0), int(weight[spins & ~mine & (process == own)].sum()))
        parts = [
            spun,
            sleep,
            *([_lacked(report, selection, leader)] if lacked * 2 > states.get(leader, 0) else []),
        ]
        cover = Cover(*(np.concatenate([spans[edge] for spans in parts]) for edge in (0, 1)))
        every.append(_Lost(lacked, int(weight[spins & mine].sum()), slept, work=work, cover=cover))
    return max(every, key=lambda lost: lost.bound)


def _lacked(report: Report, selection: Selection, leader: int) -> tuple[Int64Array, Int64Array]:
    """Return when the leading thread lacked a CPU."""
    times = rows(
        report, selection, "thread", table="thread_states", where=f"state = 'runnable' AND thread = {leader}"
    )
    return numbers(times, "start"), numbers(times, "end")


def _slept(
    report: Report, selection: Selection, native: pa.Table, spins: BoolArray, leader: int
) -> tuple[int, Int64Array, Int64Array]:
    """Return how long, and when, the leading thread slept in functions that mostly spin.

    Functions of Python in which it spins when it runs.
    """
    nothing = np.empty(0, np.int64)
    try:
        code, threads = python_time(report, selection)
    except MissingData:
        return 0, nothing, nothing
    time = next((time for time in threads if time.thread == leader), None)
    if time is None or not len(spins):
        return 0, nothing, nothing
    weight = np.asarray(native["weight"].to_numpy(), np.float64)
    # The innermost Python function of each native sample; `share`: the part of its samples' time
    # that spins.
    place = code.python[code.frames.positions(native["stack"])]
    known, which = np.unique(place, return_inverse=True)
    share = np.bincount(which, weight * spins, len(known)) / np.maximum(
        np.bincount(which, weight, len(known)), 1
    )
    there = np.isin(code.python[time.stack], known[(share > _MOSTLY) & (known >= 0)])
    there &= time.waited > 0
    return round(float(time.waited[there].sum())), time.since[there], time.until[there]


def _finding(
    report: Report,
    selection: Selection,
    kind: _Kind,
    native: pa.Table,
    spins: BoolArray,
    share: float,
    least: float,
) -> Finding | None:
    begin, end = edges(report, selection)
    weight = np.asarray(native["weight"].to_numpy(), np.int64)
    spent, whole = int(weight[spins].sum()), int(weight.sum())
    if not spins.any() or spent * 100 < share * whole:
        return None
    lost = _lost(report, selection, native, spins=spins)
    bound: int | None = min(lost.bound, end - begin)
    # with one thread the work takes the CPU time in which nobody spun; with fewer threads nobody keeps a CPU away
    estimate: int | None = min(max(round(lost.lacked * spent / whole), lost.bound - lost.work), end - begin)
    if lost.bound * 100 < least * (end - begin):
        bound = estimate = None
    short = lost.lacked >= _SHORTAGE * (end - begin)
    there = cpus(report)
    processes, threads = (len(np.unique(native[name].to_numpy()[spins])) for name in ("process", "thread"))
    cause = f"{counted(threads, 'thread')} in {counted(processes, 'process')} spin on {counted(there, 'CPU')}. The thread "
    cause += f"that the others wait for lacked a CPU that they spun on for {duration(lost.lacked)}, "
    cause += f"spun for {duration(lost.spun)}, and slept in the same calls for {duration(lost.slept)}."
    if not report.tables["thread_states"]:
        cause += " Whether a CPU was free is not known: the report has no thread states."
    elif not short:
        cause += " CPUs were free: it costs CPU time, and others the use of these CPUs."
    return Finding(
        rule="spinning",
        subject=kind.name,
        title=f"Threads that wait in {kind.name} kept CPUs busy for {duration(spent)}, {percent(spent / whole)} of the CPU time",
        cause=cause,
        fix=_fix(kind, there, short),
        evidence=_evidence(native, spins, weight),
        occurrences=int(spins.sum()),
        bound=bound,
        estimate=estimate,
        confidence="medium",
        claim=lost.cover,
    )


def _fix(kind: _Kind, there: int, short: bool) -> str:
    if not kind.variable:
        return "Use a mutex instead of the spin lock, which sleeps, or hold the lock for a shorter time."
    fewer = f"Set {kind.variable} to no more than the CPUs that are free ({there} here in all; 1 in each of several processes)"
    if kind.name != "OpenMP":
        return fewer + "."
    sleep = "let threads that wait sleep with OMP_WAIT_POLICY=passive (KMP_BLOCKTIME=0 with Intel's OpenMP)"
    return (
        f"{fewer}, or {sleep}." if short else f"{sleep[0].upper()}{sleep[1:]}, or set {kind.variable} lower."
    )


def _evidence(native: pa.Table, spins: BoolArray, weight: Int64Array) -> tuple[Evidence, ...]:
    rows = np.flatnonzero(spins)
    longest = native.take(pa.array(rows[np.argsort(-weight[rows], kind="stable")][:50])).to_pylist()
    return most(
        Evidence(
            table="samples",
            id=row["id"],
            start=row["start"],
            end=row["start"] + row["weight"],
            text="spins",
            process=row["process"],
            thread=row["thread"],
        )
        for row in longest
    )
