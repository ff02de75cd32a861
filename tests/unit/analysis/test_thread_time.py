"""What samples of a thread stand for, by the states that the scheduler knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.unit.rules.asking import drawn
from warplens.analysis.cpu.thread_time import _seen, thread_times

MS = 1_000_000
# It works for 9 ms, sleeps for 2, works for 4 and sleeps again; ticks come each 10 ms.
RUNNING = np.array([0, 11]), np.array([9, 15])
RUNNABLE = np.array([15]), np.array([16])
BLOCKED = np.array([9, 16]), np.array([11, 40])


def seen(exact: bool) -> tuple[list[float], list[float]]:
    samples = pa.table({"start": [5, 10, 20], "end": [5, 10, 30], "count": [1, 1, 2]})
    since, until = np.array([0, 5, 10]), np.array([5, 10, 30])
    at_work, asleep = _seen(samples, since, until, [RUNNING, RUNNABLE, BLOCKED], exact)
    return at_work.tolist(), asleep.tolist()


def test_with_exact_switches_a_sample_counts_at_its_tick() -> None:
    assert seen(exact=True) == ([1, 0, 0], [0, 1, 2])


def test_else_it_is_the_time_up_to_the_tick() -> None:
    assert seen(exact=False) == ([1, 0.8, 0.5], [0, 0.2, 1.5])


PICTURE = """
main:python |  (main;hot:7                    )(main;wait                  )
main:state  |(running:1                       )(runnable )(blocked         )
io:python   |     (io;read                                                 )
"""


def test_the_parts_of_a_thread_are_all_of_its_time(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        PICTURE,
        tick_ns=MS,
        cpu={name: {"file": "/app/train.py"} for name in ("main", "hot", "wait", "io", "read")},
    )
    thread = next(time for time in thread_times(report) if time.samples.num_rows == 2)
    parts = [round(float(part) / MS) for part in (thread.ran.sum(), thread.waited.sum(), thread.starved)]
    assert parts == [34, 18, 11]
    assert thread.waited[0] == 0  # the first sample was at work at each of its ticks
