"""Times candidates in turn within one process, so that noise affects all of them alike.

A benchmark is `benchmarks/<name>.py` with `def run(quick: bool) -> list[Row]`. Ratios between candidates of one run are
what budgets are about; absolute figures are only for orientation.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured figure and what it is held against.

    `peer` names the floor or competitor and `peer_value` its figure in the same unit; `ratio` is value / peer_value.
    `budget` is the greatest allowed ratio (`budget_on="ratio"`), or the greatest (`"value"`) or least (`"at least"`) allowed value.
    """

    what: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    budget: float | None = None
    budget_on: str = "ratio"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Value over the peer's value."""
        return None if not self.peer_value else self.value / self.peer_value

    @property
    def ok(self) -> bool | None:
        """Whether the budget is kept; None where there is none."""
        if self.budget is None:
            return None
        if self.budget_on == "at least":
            return self.value >= self.budget
        measured = self.ratio if self.budget_on == "ratio" else self.value
        return measured is not None and measured <= self.budget


@dataclass(frozen=True)
class Timing:
    """Nanoseconds per call of one candidate over all rounds."""

    rounds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The fastest round: what the code costs when nothing disturbs it."""
        return min(self.rounds)

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.rounds)


def interleave(
    candidates: Mapping[str, Callable[[int], object]],
    *,
    calls: int,
    rounds: int = 21,
    clock: Callable[[], int] = time.thread_time_ns,
) -> dict[str, Timing]:
    """Time each candidate `rounds` times in turn; a candidate gets the number of calls to make and loops itself.

    Args:
        candidates: name to function; the function is called with `calls`.
        calls: how many operations one round of one candidate does; the result is per operation.
        rounds: how often the whole circle is run; the order is reversed every other time.
        clock: ns counter; CPU time of this thread, so that other work on the machine counts little. Take
            `time.perf_counter_ns` where several threads or processes work, or where waiting is part of the cost.
    """
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    order = list(candidates)
    for function in candidates.values():
        function(max(1, calls // 10))
    enabled = gc.isenabled()
    gc.disable()
    try:
        for number in range(rounds):
            for name in order if number % 2 == 0 else reversed(order):
                before = clock()
                candidates[name](calls)
                samples[name].append((clock() - before) / calls)
    finally:
        if enabled:
            gc.enable()
    return {name: Timing(tuple(values)) for name, values in samples.items()}


def quickest(work: Mapping[str, Callable[[], object]], rounds: int = 3) -> dict[str, float]:
    """Call each function `rounds` times in turn and return the seconds of its fastest call: for what takes seconds by itself."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, function in work.items():
            before = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - before)
    return best


def paired_ratio(one: Timing, other: Timing) -> float:
    """Median over the rounds of one/other, each pair measured side by side: steadier than a ratio of two medians."""
    return statistics.median(a / b for a, b in zip(one.rounds, other.rounds, strict=True))
