"""A function of the program that takes a large part of the time.

## What it looks for
Functions of the program's own code (not of the standard library or an installed package) that ran
for at least a quarter of the judged time. Time in functions that they call counts, up to the next
function of the program. If no function has that much by itself, the rule reports the innermost one
with half of the time including all that it calls, unless that is the function that runs the whole
program. Imports, garbage collections and waiting do not count. If there is a GPU, only time in
which it was idle counts. Needs at least 20 Python samples of the function.

## Why it costs time
The thread does nothing else during that time. The function may be necessary, but this is where the
time goes.

## What to do
Examine the lines of the function (`warplens source`). In Python bytecode: do less in the loop, keep
results, pass whole arrays to NumPy or similar. In a library: find the call that does the same work
in one piece, or request less of it.

## When it does not apply
If the function does the purpose of the program in the best possible way. If it waits in a loop,
which looks like work. If another thread decides how long the program takes. For programs that use a
GPU, see `gpu_waits_for_cpu` instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warplens.analysis.cpu.native_places import FunctionKey, NativePlaces
from warplens.analysis.cpu.own_code import OwnCode, package_called
from warplens.analysis.cpu.thread_time import ThreadTime, of_kind, read_samples
from warplens.analysis.intervals import Cover
from warplens.arrays import Float64Array, Int64Array
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import edges, idle
from warplens.rules.python_time import called, python_time

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/faq/programming.html#my-program-is-too-slow-how-do-i-speed-it-up"
_MOSTLY = 0.5
_WHOLE = 2  # own frames, from the outermost: the module, and what it calls to run the program
_SHOWN = 3
_TICKS = 20  # of samples: fewer say nothing


class _Stood(NamedTuple):
    """What the samples with one stack, which ends at a `position`, stand for."""

    position: int
    ns: float
    ticks: int


@dataclass
class _Held:
    """What a function held: ns by thread, by line, by what it called; the ends of its stacks."""

    threads: dict[int, float] = field(default_factory=dict)
    lines: dict[int, float] = field(default_factory=dict)
    below: dict[str, float] = field(default_factory=dict)
    ends: set[int] = field(default_factory=set)
    ticks: int = 0

    @property
    def sum(self) -> float:
        """On all threads."""
        return sum(self.threads.values())

    def add(self, stood: _Stood, thread: int, line: int, below: str) -> None:
        """Add what samples with one stack stand for."""
        ns = stood.ns
        self.ticks += stood.ticks
        self.ends.add(stood.position)
        self.threads[thread] = self.threads.get(thread, 0.0) + ns
        self.lines[line] = self.lines.get(line, 0.0) + ns
        self.below[below] = self.below.get(below, 0.0) + ns


@dataclass(frozen=True)
class _Wanted:
    """A function that holds the time: `bound` ns of it.

    `rows`: its samples of each thread, by position.
    """

    key: FunctionKey
    held: _Held
    bound: int
    rows: list[tuple[ThreadTime, Int64Array]]


def check(report: Report, selection: Selection, *, least: float = 25, total: float = 50) -> list[Finding]:
    """Return a finding for each function that holds the time.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time that a function must hold itself.
        total: percent that it must hold together with the functions of the program that it calls,
            if none holds enough itself.
    """
    if report.tables["kernels"]:
        return []  # there it matters what keeps the GPU waiting: gpu_waits_for_cpu
    code, threads = python_time(report, selection)
    begin, end = edges(report, selection)
    ran = _ran(report, selection, code, threads=threads)
    own: dict[FunctionKey, _Held] = {}
    for time in threads:
        _add(own, code, time, ran=ran[time.thread])
    chosen = _wanted(own, threads, ran, span=end - begin, share=least / 100)
    inclusive = not chosen
    if inclusive:
        above, depth = _with_callees(code, threads, ran)
        deepest = {key: held for key, held in above.items() if depth[key] > _WHOLE}
        chosen = sorted(
            _wanted(deepest, threads, ran, span=end - begin, share=total / 100),
            key=lambda one: (-depth[one.key], -one.bound),
        )[:1]
    if not chosen:
        return []
    native = NativePlaces.of(code, of_kind(read_samples(report), "native"))
    return [_finding(one, native, end - begin, inclusive=inclusive) for one in chosen[:_SHOWN]]


def _wanted(
    held: dict[FunctionKey, _Held],
    threads: tuple[ThreadTime, ...],
    ran: dict[int, Float64Array],
    span: int,
    share: float,
) -> list[_Wanted]:
    """Return the functions that held a share of the time, the greatest first."""
    result = []
    for key, one in held.items():
        if one.ticks < _TICKS:
            continue
        mine = [time for time in threads if time.thread in one.threads]
        # what a thread lacked a CPU for is no time of any function
        least = share * (span - min(time.starved for time in mine))
        if one.sum < least:
            continue
        ends = np.array(sorted(one.ends))
        rows = [(time, np.flatnonzero(np.isin(time.stack, ends) & (ran[time.thread] > 0))) for time in mine]
        bound = min(_together(rows, ran), span)
        if bound >= least:
            result.append(_Wanted(key, one, bound, rows=rows))
    return sorted(result, key=lambda one: -one.bound)


def _together(rows: list[tuple[ThreadTime, Int64Array]], ran: dict[int, Float64Array]) -> int:
    """Return in how much time, ns, any of the threads was in the function.

    Two that ran for half of a stretch may have done so one after the other, as with a GIL: that is all of it. Two that ran for all of it
    did so at once: that is no more than all.
    """
    since, until = (
        np.concatenate([getattr(time, edge)[mine] for time, mine in rows]) for edge in ("since", "until")
    )
    rate = np.concatenate([ran[time.thread][mine] for time, mine in rows]) / np.maximum(until - since, 1)
    # A sum of rates over time, at most 1: threads at 0.5 in [0, 10) and 1.0 in [5, 20) have the
    # levels 0.5, 1 (1.5 cut) and 1 in [0, 5), [5, 10) and [10, 20), so 17.5 ns.
    at, step = np.concatenate((since, until)), np.concatenate((rate, -rate))
    order = np.argsort(at, kind="stable")
    level = np.clip(np.cumsum(step[order])[:-1], 0, 1)
    return round(float((level * np.diff(at[order])).sum()))


def _ran(
    report: Report, selection: Selection, code: OwnCode, threads: tuple[ThreadTime, ...]
) -> dict[int, Float64Array]:
    """Return for how long each sample's thread ran its own work, ns.

    No imports, no collections, no time in which a GPU is busy.
    """
    gpu = idle(report, selection, whole=True)
    collections: dict[int, tuple[list[int], list[int]]] = {}
    for row in report.table("gc", ["thread", "start", "end"]).to_pylist() if report.tables["gc"] else ():
        starts, ends = collections.setdefault(row["thread"], ([], []))
        starts.append(row["start"])
        ends.append(row["end"])
    result = {}
    for time in threads:
        length = np.maximum(time.until - time.since, 1)
        share = np.where(code.importing[time.stack], 0.0, 1.0)
        if time.thread in collections:
            share *= 1 - Cover(*collections[time.thread]).within(time.since, time.until) / length
        if gpu is not None:
            share *= gpu.within(time.since, time.until) / length
        result[time.thread] = np.asarray(time.ran * np.clip(share, 0, 1), np.float64)
    return result


def _stacks(time: ThreadTime, ran: Float64Array) -> Iterator[_Stood]:
    positions, which = np.unique(time.stack, return_inverse=True)
    count = np.where(ran > 0, time.samples["count"].to_numpy(), 0)
    sums = (np.bincount(which, values, len(positions)).tolist() for values in (ran, count))
    for position, ns, ticks in zip(positions.tolist(), *sums, strict=True):
        if ns > 0:
            yield _Stood(position, ns, int(ticks))


def _add(own: dict[FunctionKey, _Held], code: OwnCode, time: ThreadTime, ran: Float64Array) -> None:
    for stood in _stacks(time, ran):
        anchor = int(code.own[stood.position])
        if anchor >= 0:
            frame = code.frames.frame(anchor)
            held = own.setdefault((frame.function, frame.file or "", frame.first_line), _Held())
            held.add(stood, time.thread, frame.line or 0, package_called(code, stood.position, anchor))


def _with_callees(
    code: OwnCode, threads: tuple[ThreadTime, ...], ran: dict[int, Float64Array]
) -> tuple[dict[FunctionKey, _Held], dict[FunctionKey, int]]:
    """Return what own functions hold with all that they call, and how deep they lie at most.

    The module: 1.
    """
    held: dict[FunctionKey, _Held] = {}
    depth: dict[FunctionKey, int] = {}
    for time in threads:
        for stood in _stacks(time, ran[time.thread]):
            path = _own_path(code, stood.position)
            # a function that calls itself counts once
            for number, (key, line, callee) in {
                entry[0]: (index, entry) for index, entry in enumerate(path)
            }.values():
                held.setdefault(key, _Held()).add(stood, time.thread, line, callee)
                depth[key] = max(depth.get(key, 0), number + 1)
    return held, depth


def _own_path(code: OwnCode, position: int) -> list[tuple[FunctionKey, int, str]]:
    """Return the own functions of a stack from the outermost.

    Key, line, name of the own function that it called.
    """
    path: list[tuple[FunctionKey, int, str]] = []
    callee, at = "", int(code.own[position])
    while at >= 0:
        frame = code.frames.frame(at)
        path.append(((frame.function, frame.file or "", frame.first_line), frame.line or 0, callee))
        callee = frame.function
        above = int(code.frames.parent[at])
        at = int(code.own[above]) if above >= 0 else -1
    return path[::-1]


def _finding(one: _Wanted, native: NativePlaces, span: int, inclusive: bool) -> Finding:
    (function, file, _), held = one.key, one.held
    line, at_line = max(held.lines.items(), key=lambda item: item[1])
    callee, in_callee = max(held.below.items(), key=lambda item: item[1])
    name = called(function, file)
    where = f"{file.rpartition('/')[2]}:{line}"
    cause = f"Its line {where} has {percent(at_line / held.sum)} of that."
    library = native.where(one.key)
    if inclusive:
        fix = f"Among its callees, {callee} takes most: `warplens flame --kind python` shows all of it."
    elif callee and in_callee >= _MOSTLY * held.sum:
        cause += f" {percent(in_callee / held.sum)} was in functions of {callee} that it calls."
        fix = (
            f"Call {callee} less often, or find its function that does the work at once; `warplens "
            "source` shows each line."
        )
    elif library.startswith("in "):
        cause += f" It ran C code, most of it {library}."
        fix = (
            f"Call into {library.removeprefix('in ')} less often or with less work; `warplens "
            "source` shows the time of each line."
        )
    else:
        cause += " It ran Python's own bytecode." if library else ""
        fix = (
            "Do less in this function, keep its results, or pass whole arrays to compiled code; "
            "`warplens source` shows each line."
        )
    several = f" on {counted(len(held.threads), 'thread')}" if len(held.threads) > 1 else ""
    alone = " with the functions that it calls" if inclusive else ""
    starts, ends = (
        np.concatenate([getattr(time, edge)[mine] for time, mine in one.rows]) for edge in ("since", "until")
    )
    return Finding(
        rule="hot_function",
        subject=name,
        title=f"{name} holds {duration(one.bound)}, {percent(one.bound / span)} of the time{alone}{several}",
        cause=cause,
        fix=fix,
        evidence=most(row for time, mine in one.rows for row in _evidence(time, mine, where)),
        occurrences=len(starts),
        bound=one.bound,
        confidence="high",
        claim=Cover(starts, ends),
    )


def _evidence(time: ThreadTime, rows: Int64Array, where: str) -> Iterator[Evidence]:
    """Yield the longest samples of a thread."""
    ids = time.samples["id"]
    for row in rows[np.argsort(time.since[rows] - time.until[rows], kind="stable")][:50].tolist():
        yield Evidence(
            table="samples",
            id=ids[row].as_py(),
            start=int(time.since[row]),
            end=int(time.until[row]),
            text=where,
            process=time.process,
            thread=time.thread,
        )
