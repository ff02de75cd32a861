"""Converting a spool of CPU records: records per second and memory, beside writing the tables alone.

Half of the records are OS calls of four threads, in separate chunks as the agent writes them; the others are samples (a third, of 2,000
stacks), thread states, holds of the GIL and calls. There is one NVTX range for every ten OS calls. Each size is finished in a process
so that its peak memory is its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _finishing import finish_sizes, measure
from finish_cuda import _rows, _write
from harness import Row
from warplens.arrays import Int64Array
from warplens.testing import spool_writer as sw

THREADS = 4
FRAMES = 2_000
EVERY = 10_000  # ns from one OS call to the next
BLOCK = 100_000
TABLE_NAMES = ("samples", "osrt", "thread_states", "gil", "python_calls", "frames")


def run(quick: bool) -> list[Row]:
    """Measure 10^6 records, and 10^7 unless `quick`."""
    return finish_sizes("CPU", Path(__file__), make_spool, TABLE_NAMES, quick=quick)


def make_spool(directory: Path, records: int) -> None:
    """Write a spool directory with this number of records of the CPU side."""
    names = dict(
        enumerate(
            ("poll", "read", "pthread_cond_timedwait", "futex", "/data/file", "step", "/app/model.py"), 1
        )
    )
    names |= {10 + number: f"package.module.Class{number}.method" for number in range(FRAMES)}
    about = [sw.meta("thread", thread=thread, tid=100 + thread, start=1) for thread in range(THREADS)]
    path = sw.write(directory, sw.spool([sw.strings(names), sw.records(sw.NO_THREAD, about)]))
    calls = records // 2
    rng = np.random.default_rng(1)
    with open(path, "r+b") as file:
        file.seek(0, 2)
        _frames(file)
        for first in range(0, calls, BLOCK):
            number = np.arange(first, min(first + BLOCK, calls))
            _calls(file, number, rng)
            _samples(file, number[: len(number) * 2 // 3], rng)
            _others(file, number[len(number) * 2 // 3 :])
            _ranges(file, number[::10])
        end = file.tell()
        file.seek(56)
        file.write(np.array([end, end], "<u8").tobytes())


def _frames(file: BinaryIO) -> None:
    rows = _rows("cpu_frame", FRAMES)
    number = np.arange(FRAMES)
    rows["node"], rows["parent"] = number + 1, np.where(number % 20, number, 0)
    rows["domain"], rows["name"], rows["file"], rows["line"], rows["first_line"] = (
        2,
        10 + number,
        7,
        number,
        1,
    )
    _write(file, rows)


def _calls(file: BinaryIO, number: Int64Array, rng: np.random.Generator) -> None:
    rows = _rows("os_call", len(number))
    rows["start"] = 1_000_000 + number * EVERY
    rows["end"] = rows["start"] + rng.integers(1_000, 30_000, len(number))
    rows["tid"] = 100 + number % THREADS
    rows["name"] = 1 + number % 4
    rows["fd"] = np.where(number % 2, 3, -1)
    rows["text"] = np.where(number % 4 == 1, 5, 0)
    rows["flags"] = number % 4 == 1
    rows["result"] = number % 1000
    rows["stack"] = np.where(number % 10 == 0, 1 + number % FRAMES, 0)
    # Threads have separate buffers: their calls come one thread after the other.
    _write(file, rows[np.argsort(rows["tid"], kind="stable")])


def _samples(file: BinaryIO, number: Int64Array, rng: np.random.Generator) -> None:
    rows = _rows("cpu_sample", len(number))
    rows["start"] = rows["end"] = 1_000_000 + number * EVERY
    rows["domain"], rows["count"], rows["interval"], rows["cpu"], rows["flags"] = (
        1,
        1,
        1_000_000,
        0xFFFFFFFF,
        1,
    )
    rows["tid"], rows["stack"] = 100 + number % THREADS, rng.integers(1, FRAMES + 1, len(number))
    _write(file, rows)


def _others(file: BinaryIO, number: Int64Array) -> None:
    for place, kind in enumerate(("cpu_state", "gil", "python_span")):
        mine = number[place::3]
        rows = _rows(kind, len(mine))
        rows["start"] = 1_000_000 + mine * EVERY
        rows["end"] = rows["start"] + EVERY
        rows["tid"] = 100 + mine % THREADS
        rows["domain"] = 1 + mine % 3 if kind != "python_span" else 1
        if kind == "python_span":
            rows["name"], rows["file"], rows["line"] = 10 + mine % FRAMES, 7, 3
        elif kind == "cpu_state":
            rows["cpu"] = mine % 2
        _write(file, rows)


def _ranges(file: BinaryIO, number: Int64Array) -> None:
    for thread in range(THREADS):
        mine = number[number // 10 % THREADS == thread]
        items = [
            sw.event("range", 1_000_000 + at * EVERY - 100, 1_000_000 + (at + 9) * EVERY, 6)
            for at in mine.tolist()
        ]
        file.write(sw.chunk(1, 40, thread, b"".join(items)))


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), TABLE_NAMES)))
