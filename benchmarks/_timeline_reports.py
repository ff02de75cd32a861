"""Writes the report for the viewer benchmark: 10 ranks and 200 tracks, through the real writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from _cuda_reports import launches
from _tables import texts
from warplens.arrays import Int64Array
from warplens.storage.schema import schema
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts, PartWriter

PROCESSES = 10
THREADS = 8  # of a process: NVTX and CUDA API are a track each
STREAMS = 4
TRACKS = PROCESSES * (2 * THREADS + STREAMS)
GROUP = THREADS << 15
NAMES = 300
_STEP = 5_000  # ns from launch to launch, of one thread
_OPS, _STEPS = 8, 64  # launches in a range of each level
_ROWS_PER_LAUNCH = 2 + 1 / _OPS + 1 / _STEPS  # call, kernel, ranges


def make_timeline_report(path: Path, events: int) -> int:
    """Write a report of about `events` calls, kernels and ranges; return how many it has.

    300 kernel names of up to 300 characters, log-normal durations; every kernel has its call and lies in its thread's ranges.
    """
    rng = np.random.default_rng(23)
    each = round(events / _ROWS_PER_LAUNCH / PROCESSES / THREADS / _STEPS) * _STEPS  # launches of a thread
    facts = Facts("bench-1-1", "bench", "boot", command=["bench"], origin=0, end=(each + 2) * _STEP)
    total = 0
    with PartWriter(path, facts.id, facts.host) as part:
        common = {
            "host": "bench",
            "start": 0,
            "end": facts.end,
            "parent_pid": 0,
            "executable": "python",
            "command": "python train.py",
        }
        part.write(
            "processes",
            [
                {
                    **common,
                    "process": n,
                    "pid": 100 + n,
                    "rank": n,
                    "local_rank": n,
                    "primary": True,
                    "exited": True,
                }
                for n in range(PROCESSES)
            ],
        )
        part.write(
            "threads",
            [
                {
                    "thread": p * THREADS_PER_PROCESS + t,
                    "process": p,
                    "tid": 100 * (p + 1) + t,
                    "name": f"worker {t}",
                    "start": 0,
                }
                for p in range(PROCESSES)
                for t in range(THREADS)
            ],
        )
        part.write(
            "devices",
            [
                {"process": p, "device": p, "name": "Benchmark GPU", "uuid": f"GPU-{p}"}
                for p in range(PROCESSES)
            ],
        )
        for process in range(PROCESSES):
            total += _ranges(part, process, each)
        for table in (_calls, _kernels):
            for process in range(PROCESSES):
                for first in range(0, each * THREADS, GROUP):
                    number = np.arange(first, min(first + GROUP, each * THREADS))
                    table(part, process, number, rng)
                    total += len(number)
        part.commit(facts)
    return total


def _begin(number: Int64Array) -> Int64Array:
    """When a launch begins: in order of `number`, and two threads that use one stream take turns."""
    thread = number % THREADS
    return number // THREADS * _STEP + thread * 2_500 // THREADS


def _calls(part: PartWriter, process: int, number: Int64Array, rng: np.random.Generator) -> None:
    begin = _begin(number)
    columns = {
        "start": begin,
        "end": begin + rng.integers(500, 2_000, len(number)),
        "thread": process * THREADS_PER_PROCESS + number % THREADS,
        "api": texts(0 * number, ["runtime"]),
        "name": texts((number % 16 == 0).astype(np.int64), ["cudaLaunchKernel", "cudaMemcpyAsync"]),
        "result": 0 * number,
        "correlation": number + 1,
    }
    _write(part, "cuda_api", process, number, columns)


def _kernels(part: PartWriter, process: int, number: Int64Array, rng: np.random.Generator) -> None:
    thread = number % THREADS
    start = number // THREADS * _STEP + thread // STREAMS * 2_500 + 2_000 + thread
    length = np.clip(np.exp(rng.normal(6.5, 1, len(number))), 100, 2_400).astype(np.int64)
    columns = {
        "start": start,
        "end": start + length,
        "device": np.full(len(number), process),
        "context": np.full(len(number), 1),
        "stream": 7 + thread % STREAMS,
        "api": process * RANGES_PER_PROCESS + number,
        "correlation": number + 1,
        **launches(number, NAMES, rng),
    }
    _write(part, "kernels", process, number, columns)


def _ranges(part: PartWriter, process: int, each: int) -> int:
    """Write the ranges of a process's threads: steps, and ops in them; return how many there are."""
    counts = np.array([each // _STEPS, each // _OPS])
    widths = np.array([_STEPS, _OPS]) * _STEP
    level = np.repeat(np.arange(2), counts * THREADS)
    thread = np.concatenate([np.repeat(np.arange(THREADS), count) for count in counts])
    number = np.concatenate([np.tile(np.arange(count), THREADS) for count in counts])
    start = number * widths[level] + thread
    order = np.lexsort((thread, level, start))
    ids = np.empty(len(order), np.int64)
    ids[order] = np.arange(len(order))
    parent = ids[thread * counts[0] + number // (_STEPS // _OPS) * level]
    message = np.where(level == 1, 1 + number % 40, 0)
    columns = {
        "thread": process * THREADS_PER_PROCESS + thread,
        "start": start,
        "end": start + widths[level] - 100 * (level + 1),
        "depth": level,
    }
    rows: dict[str, Int64Array | pa.Array] = {name: values[order] for name, values in columns.items()}
    rows["parent"] = pa.array((process * RANGES_PER_PROCESS + parent)[order], mask=(level == 0)[order])
    rows["message"] = texts(message[order], ["step", *(f"op{n}" for n in range(40))])
    rows["style"] = texts(0 * level, ["PushPop"])
    for name in ("unfinished", "inherited", "clipped"):
        rows[name] = pa.array(np.zeros(len(order), bool))
    for first in range(0, len(order), GROUP):
        some = np.arange(first, min(first + GROUP, len(order)))
        _write(
            part,
            "nvtx_ranges",
            process,
            some,
            {name: values[first : first + GROUP] for name, values in rows.items()},
        )
    return len(order)


def _write(
    part: PartWriter, table: str, process: int, number: Int64Array, columns: dict[str, Int64Array | pa.Array]
) -> None:
    wanted = schema(table)
    every = {"id": process * RANGES_PER_PROCESS + number, "process": np.full(len(number), process), **columns}
    arrays = [
        pa.array(every[item.name]).cast(item.type) if item.name in every else pa.nulls(len(number), item.type)
        for item in wanted
    ]
    part.write(table, pa.Table.from_arrays(arrays, schema=wanted))


def make_apart(path: Path, events: int) -> int:
    """Make the report in a separate process, so that its memory does not count.

    Return its number of events.
    """
    make = [sys.executable, __file__, str(path), str(events)]
    return int(subprocess.run(make, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    print(make_timeline_report(Path(sys.argv[1]), int(sys.argv[2])))
