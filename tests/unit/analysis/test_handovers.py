"""Threads that take turns, known by their calls alone: one works while the other waits for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warplens.analysis.critical_path import handovers
from warplens.analysis.critical_path.recorded import RecordedCalls
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

MAIN, ENGINE = 0, 1
STEP = 1_000


def calls(main: list[tuple[int, int]], engine: list[tuple[int, int]]) -> RecordedCalls:
    """Return calls of two threads of one process: begin and end of each, ns."""
    times = np.array(main + engine, np.int64).reshape(-1, 2)
    thread = np.repeat([MAIN, ENGINE], [len(main), len(engine)])
    none = np.zeros(len(times), np.int64)
    columns = {"id": np.arange(len(times)), "process": none, "thread": thread, "name": none}
    columns |= {"start": times[:, 0], "end": times[:, 1]}
    return RecordedCalls(columns, ["launch"], ids=columns["id"], root=columns["id"])


def found(folder: Path, recorded: RecordedCalls) -> list[handovers.Handover]:
    timeline(folder / "r.warplens", "main |[work ]")
    with open_report(folder / "r.warplens") as report:
        return handovers.find(report, None, recorded)


def steps(count: int, begin: int) -> list[tuple[int, int]]:
    """Return five calls in each step, the first one `begin` behind its begin."""
    return [
        (step * STEP + begin + 20 * place, step * STEP + begin + 20 * place + 10)
        for step in range(count)
        for place in range(5)
    ]


def test_a_thread_that_calls_between_calls_of_the_first_works_for_it(tmp_path: Path) -> None:
    turns = found(tmp_path, calls(steps(12, begin=0), steps(12, begin=500)))
    assert len(turns) == 12
    assert {(turn.waiter, turn.helper) for turn in turns} == {(MAIN, ENGINE)}
    first = turns[0]
    assert (first.begin, first.end) == (500, 590)
    assert (first.before, first.first, first.last) == (4, 60, 64)


@pytest.mark.parametrize(
    ("count", "begin", "why"),
    [(9, 500, "too few turns"), (12, 5, "at the same time as the first")],
)
def test_threads_that_do_not_take_turns_are_apart(tmp_path: Path, count: int, begin: int, why: str) -> None:
    assert found(tmp_path, calls(steps(count, begin=0), steps(count, begin=begin))) == [], why
