"""Finds the main loop of a program: the stretch of the run in which it does the same work again and again.

A training run of 15 s may import for 8 s, compile for 4 s and train for 3 s. Only the last part is the same in a run of ten hours, so
findings are about it. The loop is that of the program's named steps where they hold most of the run's GPU work, else it is inferred from
the order of the kernels: a kernel that runs once in each iteration comes again after the same number of other kernels.

    kernels   i  i  a b b c  a b b c  a b b c  e        i: initialisation, e: evaluation
    lag 4           = = = =  = = = =                    kernel n and kernel n + 4 have one name: the iteration has 4 kernels
    marker          a        a        a                 the start of each iteration
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.ops import during
from warplens.analysis.once import once
from warplens.analysis.steps.steps import base_name, steps
from warplens.arrays import Int64Array
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_FEWEST = 5  # iterations that make a loop
_REGULAR = 0.6  # share of a marker's occurrences that come after the same number of kernels
_ALIKE = 0.985  # a shorter lag is the iteration where its kernels agree nearly as often as those of the best
_STEADY = 0.85  # the same, of a lag that some kernel keeps throughout
_PART = 3  # a loop holds at least a third of the kernels
_PAUSE = 4  # iterations: a longer stretch of other kernels, such as an evaluation, ends the loop
_EARLY = 3  # iterations among which slow ones need not be neighbours
_SLOW = 1.5  # times the usual: iterations at the start that take longer belong to the start-up
_MOST = 1 << 24  # kernels that are looked at
_MOST_RANGES = 1 << 21  # among which steps are looked for: they take 100 bytes each


@dataclass(frozen=True, eq=False)
class MainLoop:
    """The main loop.

    `begin`, `end`: ns, the report's clock, from the first usual iteration to the end of the last.

    `starts`: when the iterations of the process with the longest loop begin, ns; `usual`: their median length, ns. `name`: of the ranges
    that are its steps; None if it was inferred from kernels. `skipped`: slow iterations before `begin`.
    """

    begin: int
    end: int
    process: int
    starts: Int64Array
    usual: int
    skipped: int
    name: str | None

    @property
    def iterations(self) -> int:
        """Number of iterations, without the skipped ones."""
        return len(self.starts)


@once
def main_loop(report: Report, selection: Selection) -> MainLoop | None:
    """Return the main loop of the selected part; None if the program has none.

    Loops of several processes are one: from the first begin to the last end. Reports of very many ranges or kernels have none.
    """
    kernels = _kernels(report, selection)
    known: dict[int, tuple[str | None, Int64Array, int]] = {}
    for process, name, start, end in _named(report, selection):
        if _holds(kernels, process, start=start, end=end):
            known[process] = name, start, int(end[-1])
    for process, (started, code) in kernels.items():
        if process not in known and (times := inferred(started, code)) is not None:
            known[process] = None, times[:-1], int(times[-1])
    loops = [loop for process, edges in known.items() if (loop := _usual(process, *edges)) is not None]
    if not loops:
        return None
    longest = max(loops, key=lambda loop: loop.end - loop.begin)
    first, last = min(loop.begin for loop in loops), max(loop.end for loop in loops)
    return MainLoop(
        first,
        last,
        longest.process,
        starts=longest.starts,
        usual=longest.usual,
        skipped=longest.skipped,
        name=longest.name,
    )


def inferred(started: Int64Array, code: Int64Array) -> Int64Array | None:
    """Return the begins of the iterations of the main loop and, as the last, its end, ns.

    None if kernels do not repeat.

    `started`, `code`: when each kernel began, in order, and a number for its name.
    """
    if len(code) < 2 * _FEWEST:
        return None
    order = np.argsort(code, kind="stable")
    edges = np.flatnonzero(np.diff(code[order], prepend=-1, append=-1))
    lags: dict[int, tuple[float, float, Int64Array]] = {}
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if high - low < _FEWEST:
            continue
        places = order[low:high]
        spacing = np.diff(places)
        lag = int(np.median(spacing))
        regular = float(np.mean(np.abs(spacing - lag) <= max(lag // 20, 0)))
        covered = regular * (places[-1] - places[0])
        if (
            regular >= _REGULAR
            and covered * _PART >= len(code)
            and covered > lags.get(lag, (0.0, 0.0, places))[0]
        ):
            lags[lag] = covered, regular, places
    if not lags:
        return None
    # Layers repeat within an iteration, ten iterations make one that logs: both have a lag, and kernels agree less at that of a layer.
    # A kernel that never misses a beat counts as a marker although what is logged puts kernels out of step.
    agree = {lag: _agreement(code, lag) for lag in lags}
    alike = [
        lag
        for lag in lags
        if agree[lag] >= (_STEADY if lags[lag][1] > 0.999 else _ALIKE) * max(agree.values())
    ]
    return _longest_run(started, lags[min(alike)][2], min(alike))


def _agreement(code: Int64Array, lag: int) -> float:
    return float(np.mean(code[lag:] == code[:-lag])) if lag < len(code) else 0.0


def _longest_run(started: Int64Array, places: Int64Array, lag: int) -> Int64Array | None:
    """Return the start of a marker's longest run without a long pause, and the expected end of the iteration after it."""
    breaks = np.flatnonzero(np.diff(places) > _PAUSE * lag) + 1
    runs = np.split(places, breaks)
    best = max(runs, key=len)
    if len(best) < _FEWEST or (best[-1] - best[0]) * _PART < len(started):
        return None
    last = min(int(best[-1]) + lag, len(started) - 1)
    return np.append(started[best], max(int(started[last]), int(started[best[-1]]) + 1))


def _usual(process: int, name: str | None, start: Int64Array, end: int) -> MainLoop | None:
    """Return the loop from its first usual iteration on."""
    spent = np.diff(np.append(start, end))
    later = spent[len(spent) // 2 :]
    usual = int(np.median(later))
    # Slowness that comes again, as that of a checkpoint or a collection, is the loop's own.
    slow = np.append(spent > max(_SLOW * usual, float(np.quantile(later, 0.95))), False)
    early = np.flatnonzero(slow[:_EARLY])
    skipped = int(early[-1]) + 1 if len(early) else 0
    skipped += int(np.argmin(slow[skipped:]))  # and those that follow at once
    if len(spent) - skipped < _FEWEST:
        return None
    return MainLoop(
        int(start[skipped]), end, process, starts=start[skipped:], usual=usual, skipped=skipped, name=name
    )


def _kernels(report: Report, selection: Selection) -> dict[int, tuple[Int64Array, Int64Array]]:
    """Return for each process the begins of its kernels and whole graphs, in order, and numbers for their names."""
    where = during(report, selection)
    if sum(report.tables[table] for table in ("kernels", "graphs")) > _MOST:
        return {}
    # Hashes stand for names: the names of ten million kernels would take gigabytes. Shifted, so that differences fit into 64 bits.
    rows = report.sql(
        f"""SELECT process, "start", (hash(demangled) >> 1)::BIGINT AS code FROM kernels WHERE {where}
            UNION ALL SELECT process, "start", 0 FROM graphs WHERE {where} ORDER BY process, "start" """
    )
    process, started, code = (
        np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("process", "start", "code")
    )
    edges = np.flatnonzero(np.diff(process, prepend=-1, append=-1)).tolist()
    return {
        int(process[low]): (started[low:high], _numbered(code[low:high])) for low, high in pairwise(edges)
    }


def _numbered(code: Int64Array) -> Int64Array:
    """Return numbers in the order in which the codes first come.

    Of markers that are equally good the earliest counts.
    """
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[place]


def _named(report: Report, selection: Selection) -> list[tuple[int, str, Int64Array, Int64Array]]:
    """Return for each process the name, begins and ends of its named steps."""
    if report.tables["nvtx_ranges"] > _MOST_RANGES:
        return []
    try:
        rows = steps(report, selection)
    except MissingData:
        return []
    process, start, end = (
        np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("process", "start", "end")
    )
    result = []
    for one in np.unique(process).tolist():
        mine = process == one
        if mine.sum() >= _FEWEST:
            first = rows.column("name")[int(np.argmax(mine))].as_py()
            result.append((one, base_name(first), start[mine], end[mine]))
    return result


def _holds(
    kernels: dict[int, tuple[Int64Array, Int64Array]], process: int, start: Int64Array, end: Int64Array
) -> bool:
    """Return whether most of the process's kernels began between its first and its last step.

    True if it has no kernels.
    """
    if process not in kernels:
        return True
    began = kernels[process][0]
    return _PART * int(((began >= start[0]) & (began <= end[-1])).sum()) >= len(began)
