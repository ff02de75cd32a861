"""A function of the program itself that holds the time.

## What it looks for
Functions of the program's own code, neither of the standard library nor of an installed package,
that ran for a quarter of the time that is looked at, or more, on one thread. What they call counts
for them up to the next function of the program itself. Where no function has that much alone, the
innermost one that has half of the time with all that it calls, unless it is the one that runs the
whole program. Imports, garbage collections and waiting do not count; where there is a GPU, only the
time in which it had nothing to do. Needs samples of Python, 20 of the function at least.

## Why it costs time
The thread does nothing else meanwhile. This is where the time goes, whether it must or not.

## What to do
Look at the lines of the function (`warplens source`). In Python's own bytecode: do less in the
loop, keep results, hand whole arrays to NumPy and the like. In a library: find the call that does
the same work at once, or asks for less of it.

## When it is wrong
Where the function does the work that the program is for, in the best way there is. Where it waits
in a loop, which looks like work. Where another thread decides how long the program takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.native_places import FunctionKey, NativePlaces
from warplens.analysis.cpu.own_code import OwnCode, package_called
from warplens.analysis.cpu.thread_time import ThreadTime, of_kind, read_samples
from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray, Float64Array
from warplens.model.words import counted, duration
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
    """What a function held: ns by thread, by line, by what it called; the samples of its busiest thread."""

    threads: dict[int, float] = field(default_factory=dict)
    lines: dict[int, float] = field(default_factory=dict)
    below: dict[str, float] = field(default_factory=dict)
    ticks: int = 0

    @property
    def busiest(self) -> int:
        """The thread on which it held most."""
        return max(self.threads, key=lambda thread: self.threads[thread])

    @property
    def longest(self) -> float:
        """On the thread where it held most."""
        return max(self.threads.values())

    def add(self, stood: _Stood, thread: int, line: int, below: str) -> None:
        """Add what samples with one stack stand for."""
        ns = stood.ns
        self.ticks += stood.ticks
        self.threads[thread] = self.threads.get(thread, 0.0) + ns
        self.lines[line] = self.lines.get(line, 0.0) + ns
        self.below[below] = self.below.get(below, 0.0) + ns


def check(report: Report, selection: Selection, *, least: float = 25, total: float = 50) -> list[Finding]:
    """Return a finding for each function that holds the time.

    Args:
        report: the report.
        selection: which part of it.
        least: percent of the time looked at that a function must hold itself.
        total: percent that it must hold with the functions of the program that it calls, where none has so much itself.
    """
    code, threads = python_time(report, selection)
    begin, end = edges(report, selection)
    own: dict[FunctionKey, _Held] = {}
    ran = {time.thread: _ran(report, selection, code, time) for time in threads}
    for time in threads:
        _add(own, code, time, ran[time.thread])
    # what of a thread's time counts: without a free CPU no function is hot
    spans = {time.thread: end - begin - time.starved for time in threads}
    wanted = {key: held for key, held in own.items() if held.ticks >= _TICKS and held.longest * 100 >= least * spans[held.busiest]}
    inclusive = not wanted
    if inclusive:
        wanted = _with_callees(code, threads, ran, {thread: total / 100 * span for thread, span in spans.items()})
    if not wanted:
        return []
    native = NativePlaces(code, of_kind(read_samples(report), "native"))
    ordered = sorted(wanted.items(), key=lambda item: -item[1].longest)[:_SHOWN]
    return [_finding(code, key, held, threads, native, end - begin, inclusive) for key, held in ordered]


def _ran(report: Report, selection: Selection, code: OwnCode, time: ThreadTime) -> Float64Array:
    """Return for how long each sample's thread ran its own work, ns: no imports, no collections, no time in which a GPU is busy."""
    length = np.maximum(time.until - time.since, 1)
    share = np.where(code.importing[time.stack], 0.0, 1.0)
    if report.tables["gc"]:
        rows = report.table("gc", ["thread", "start", "end"])
        rows = rows.filter(pc.equal(rows["thread"], time.thread))
        share *= 1 - Cover(rows["start"].to_numpy(), rows["end"].to_numpy()).within(time.since, time.until) / length
    gpu = idle(report, selection, whole=True)
    if gpu is not None:
        share *= gpu.within(time.since, time.until) / length
    return np.asarray(time.ran * np.clip(share, 0, 1), np.float64)


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
    code: OwnCode, threads: tuple[ThreadTime, ...], ran: dict[int, Float64Array], least: dict[int, float]
) -> dict[FunctionKey, _Held]:
    """Return the innermost own function that holds so many ns with all that it calls."""
    held: dict[FunctionKey, _Held] = {}
    depth: dict[FunctionKey, int] = {}
    for time in threads:
        for stood in _stacks(time, ran[time.thread]):
            path = _own_path(code, stood.position)
            # a function that calls itself counts once
            for number, (key, line, callee) in {entry[0]: (index, entry) for index, entry in enumerate(path)}.values():
                held.setdefault(key, _Held()).add(stood, time.thread, line, callee)
                depth[key] = max(depth.get(key, 0), number + 1)
    large = [key for key, one in held.items() if depth[key] > _WHOLE and one.ticks >= _TICKS and one.longest >= least[one.busiest]]
    best = max(large, key=lambda key: (depth[key], held[key].longest), default=None)
    return {} if best is None else {best: held[best]}


def _own_path(code: OwnCode, position: int) -> list[tuple[FunctionKey, int, str]]:
    """Return the own functions of a stack from the outermost: key, line, name of the own function that it called."""
    path: list[tuple[FunctionKey, int, str]] = []
    callee, at = "", int(code.own[position])
    while at >= 0:
        frame = code.frames.frame(at)
        path.append(((frame.function, frame.file or "", frame.first_line), frame.line or 0, callee))
        callee = frame.function
        above = int(code.frames.parent[at])
        at = int(code.own[above]) if above >= 0 else -1
    return path[::-1]


def _finding(
    code: OwnCode,
    key: FunctionKey,
    held: _Held,
    threads: tuple[ThreadTime, ...],
    native: NativePlaces,
    span: int,
    inclusive: bool,
) -> Finding:
    function, file, _ = key
    line, at_line = max(held.lines.items(), key=lambda item: item[1])
    callee, in_callee = max(held.below.items(), key=lambda item: item[1])
    whole = sum(held.threads.values())
    name = called(function, file)
    where = f"{file.rpartition('/')[2]}:{line}"
    cause = f"Its line {where} has {at_line / whole:.0%} of that."
    library = native.where(key)
    if inclusive:
        fix = f"Of what it calls {callee} takes most: `warplens flame --kind python` shows all of it."
    elif callee and in_callee >= _MOSTLY * whole:
        cause += f" {in_callee / whole:.0%} was in functions of {callee} that it calls."
        fix = f"Call {callee} less often, or find its function that does the work at once; `warplens source` shows each line."
    elif library.startswith("in "):
        cause += f" It ran C code, most of it {library}."
        fix = f"Call into {library.removeprefix('in ')} less often or with less to do; `warplens source` shows what each line takes."
    else:
        cause += " It ran Python's own bytecode." if library else ""
        fix = "Do less in this function, keep its results, or hand whole arrays to compiled code; `warplens source` shows each line."
    several = f" on the busiest of {counted(len(held.threads), 'thread')}" if len(held.threads) > 1 else ""
    alone = " with the functions that it calls" if inclusive else ""
    time = next(time for time in threads if time.thread == held.busiest)
    evidence, number = _evidence(code, key, time, where, inclusive)
    bound = min(round(held.longest), span)
    return Finding(
        "hot_function",
        name,
        f"{name} holds {duration(bound)}, {bound / span:.0%} of the time{alone}{several}".replace("%", " %"),
        cause.replace("%", " %"),
        fix,
        evidence,
        number,
        bound,
        confidence="high",
    )


def _evidence(code: OwnCode, key: FunctionKey, time: ThreadTime, where: str, inclusive: bool) -> tuple[tuple[Evidence, ...], int]:
    """Return the longest samples that ended in the function, or below it, and how many there are."""
    positions, which = np.unique(time.stack, return_inverse=True)
    mine: BoolArray = np.array([_is_in(code, position, key, inclusive) for position in positions.tolist()], bool)[which] & (time.ran > 0)
    rows = np.flatnonzero(mine)
    longest = rows[np.argsort(time.since[rows] - time.until[rows], kind="stable")][:50]
    ids = time.samples["id"]
    return most(
        Evidence("samples", ids[row].as_py(), int(time.since[row]), int(time.until[row]), where, time.process, time.thread)
        for row in longest.tolist()
    ), max(len(rows), 1)


def _is_in(code: OwnCode, position: int, key: FunctionKey, inclusive: bool) -> bool:
    path = [entry[0] for entry in _own_path(code, position)]
    return key in path if inclusive else bool(path) and path[-1] == key
