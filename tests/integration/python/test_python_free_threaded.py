"""Pythons that run without a GIL: what threads wait for instead, and that all of them are sampled while they run at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs.python_running import (
    COLLECTION,
    GC,
    GIL,
    HOLD,
    LOCK,
    PAUSE,
    PythonPrograms,
    free_threaded,
)
from tests.support.reports.spool_records import Record

pytestmark = [pytest.mark.require("native", "free-threaded-python"), pytest.mark.timeout(300)]
each_python = pytest.mark.parametrize("python", free_threaded() or ["python3.14t"])
MS = 1_000_000


@pytest.fixture
def programs(tmp_path: Path) -> PythonPrograms:
    """Runs programs in `tmp_path`."""
    return PythonPrograms(tmp_path)


def _overlap(one: Record, other: Record) -> int:
    return min(one["end"], other["end"]) - max(one["start"], other["start"])


# The list is locked while C code sorts it; who appends waits for that.
_SORTS = """
import random, threading, time
numbers = [random.random() for _ in range(1_000_000)]
sorting = threading.Event()
def sort():
    sorting.set()
    numbers.sort()
thread = threading.Thread(target=sort)
thread.start()
sorting.wait()
time.sleep(0.05)
start = time.monotonic_ns()
str(numbers.__len__())
list.append(numbers, 0.5)
took = time.monotonic_ns() - start
thread.join()
print(threading.get_native_id(), took)
"""


@each_python
def test_a_wait_for_the_lock_of_an_object(programs: PythonPrograms, python: str) -> None:
    """It has the type of the object, and takes as long as the program waited."""
    run = programs.run([python, "-c", _SORTS], GIL)
    thread, took = map(int, run.stdout.split())
    waits = [span for span in run.spans(LOCK) if span.name == "list" and span["tid"] == thread]
    assert took > 20 * MS, "the list was sorted before it was appended to"
    assert len(waits) == 1, [(span.name, span["tid"]) for span in run.spans(LOCK)]
    assert took / 2 < waits[0]["end"] - waits[0]["start"] <= took  # the rest is waiting for a processor
    assert run.gil() == []


_LOCKS = """
import threading, time
lock, comes = threading.Lock(), threading.Event()
def wait():
    comes.set()
    with lock: pass
lock.acquire()
thread = threading.Thread(target=wait)
thread.start()
comes.wait()
time.sleep(0.4)
lock.release()
thread.join()
print(thread.native_id)
"""


@each_python
def test_a_wait_for_a_lock_of_the_program(programs: PythonPrograms, python: str) -> None:
    run = programs.run([python, "-c", _LOCKS], GIL)
    waits = [span for span in run.spans(LOCK) if span["tid"] == int(run.stdout)]
    assert [span.name for span in waits if span["end"] - span["start"] > 150 * MS] == ["_thread.lock"]


_PAUSES = """
import gc, threading, time
kept = [[i] for i in range(400_000)]
over = False
def spin():
    while not over: pass
thread = threading.Thread(target=spin)
thread.start()
time.sleep(0.05)
for _ in range(5): gc.collect()
over = True
thread.join()
print(threading.get_native_id(), thread.native_id)
"""


@each_python
def test_a_collection_stops_the_other_threads(programs: PythonPrograms, python: str) -> None:
    """Who collects waits until they stand still; they do so for a good part of its time."""
    run = programs.run([python, "-c", _PAUSES], GIL | GC)
    collects, spins = map(int, run.stdout.split())
    full = [span for span in run.spans(COLLECTION) if span["value"] == 2 and span["tid"] == collects][-5:]
    stopped = [span for span in run.spans(PAUSE) if span.name == "stopped" and span["tid"] == spins]
    assert {span["tid"] for span in run.spans(PAUSE) if span.name == "stops the others"} <= {collects}
    paused = [
        sum(max(_overlap(one, span), 0) for one in stopped) / (span["end"] - span["start"]) for span in full
    ]
    assert max(paused) > 0.25, paused  # it stands still while objects are looked at, not while they are freed
    assert max(paused) <= 1


@each_python
def test_a_gil_that_is_asked_for_is_recorded(programs: PythonPrograms, python: str) -> None:
    code = "import sys, time\ntime.sleep(0.01)\nprint(sys._is_gil_enabled())"
    asked = programs.run([python, "-c", code], GIL, PYTHON_GIL="1")
    assert (asked.stdout, bool(asked.gil(HOLD))) == ("True\n", True)
    without = programs.run([python, "-c", code], GIL)
    assert (without.stdout, without.gil(), without.notices(14)) == ("False\n", [], [])


@each_python
def test_a_closed_window_records_no_wait(programs: PythonPrograms, python: str) -> None:
    run = programs.run([python, "-c", _LOCKS], GIL, capture=programs.capture(GIL, open=False))
    assert (run.status, run.spans(LOCK), run.spans(PAUSE)) == (0, [], [])
