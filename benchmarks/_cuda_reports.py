"""Writes CUDA reports for benchmarks, through the real writer and with the real encodings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from _tables import texts, write
from warplens.arrays import Int64Array
from warplens.storage.writer import THREADS_PER_PROCESS, Facts, PartWriter

NAMES = 400
THREADS = 4
DEVICES = 2
GROUP = 1 << 17
LAUNCHES = 25  # kernels in each range of a step
_STEP = 5_000  # ns from launch to launch, of one thread


def make_cuda_report(path: Path, kernels: int) -> Path:
    """Write a report of `kernels` kernels on two devices, launched by four threads from ranges of three levels; a copy for every eighth.

    400 kernel names of up to 300 characters, log-normal durations; every kernel and copy has its API call.
    """
    rng = np.random.default_rng(11)
    facts = Facts(
        "bench-1-1",
        "bench",
        "boot",
        command=["bench"],
        origin=0,
        end=(kernels // THREADS + 8) * _STEP + 10_000_000,
    )
    who = {
        "pid": 1,
        "parent_pid": 0,
        "executable": "bench",
        "command": "bench",
        "primary": True,
        "exited": True,
    }
    with PartWriter(path, facts.id, facts.host) as part:
        part.write("processes", [{"host": "bench", "start": 0, "end": facts.end, "process": 0, **who}])
        part.write(
            "threads",
            [
                {"thread": n, "process": 0, "tid": n + 1, "name": f"worker {n}", "start": 0}
                for n in range(THREADS)
            ],
        )
        part.write("devices", [{"process": 0, "device": n, "name": "Benchmark GPU"} for n in range(DEVICES)])
        around = _ranges(part, kernels)
        for first in range(0, kernels, GROUP):
            number = np.arange(first, min(first + GROUP, kernels))
            thread, launch = number % THREADS, number // THREADS
            begin = launch * _STEP + thread
            length = np.clip(np.exp(rng.normal(8.5, 1, len(number))), 900, 4_000_000).astype(np.int64)
            _calls(part, number, thread, begin, around[number])
            _kernels(part, number, thread, begin, length, rng)
            _copies(part, number[::8], thread[::8], begin[::8])
        part.commit(facts)
    return path


def _calls(
    part: PartWriter, number: Int64Array, thread: Int64Array, begin: Int64Array, around: Int64Array
) -> None:
    names = ["cudaLaunchKernel", "cudaMemcpyAsync"]
    write(
        part,
        "cuda_api",
        {
            "id": number,
            "process": 0 * number,
            "thread": thread,
            "start": begin,
            "end": begin + 2_500,
            "api": texts(0 * number, ["runtime"]),
            "name": texts((number % 8 == 0).astype(np.int64), names),
            "result": 0 * number,
            "correlation": number + 1,
            "range": around,
        },
    )


def _kernels(
    part: PartWriter,
    number: Int64Array,
    thread: Int64Array,
    begin: Int64Array,
    length: Int64Array,
    rng: np.random.Generator,
) -> None:
    start = begin + 4_000
    write(
        part,
        "kernels",
        {
            **_place(number, thread),
            "start": start,
            "end": start + length,
            "api": number,
            "correlation": number + 1,
            **launches(number, NAMES, rng),
        },
    )


def _copies(part: PartWriter, number: Int64Array, thread: Int64Array, begin: Int64Array) -> None:
    write(
        part,
        "memcpys",
        {
            **_place(number, thread),
            "start": begin + 3_000,
            "end": begin + 3_900,
            "bytes": 4096 + number % 1000,
            "kind": texts(number % 2, ["Host-to-Device", "Device-to-Host"]),
            "api": number,
            "correlation": number + 1,
        },
    )


def _ranges(part: PartWriter, kernels: int) -> Int64Array:
    """Write each thread's ranges: epochs of 50 steps, steps of 25 ops, an op for each launch; return the id of each launch's op."""
    last = kernels // THREADS // (50 * LAUNCHES) + 1
    counts = [last, last * 50, last * 50 * LAUNCHES]  # per thread
    widths = [50 * LAUNCHES * _STEP, LAUNCHES * _STEP, _STEP]
    offsets = np.cumsum([0, *(THREADS * count for count in counts)])
    level = np.repeat(np.arange(3), [THREADS * count for count in counts])
    thread = np.concatenate([np.repeat(np.arange(THREADS), count) for count in counts])
    number = np.concatenate([np.tile(np.arange(count), THREADS) for count in counts])
    start = number * np.take(widths, level)
    order = np.lexsort((level, start))
    ids = np.empty(len(order), np.int64)
    ids[order] = np.arange(len(order))
    above = np.maximum(level - 1, 0)
    parent = ids[
        np.take(offsets, above)
        + thread * np.take(counts, above)
        + number // np.take([1, 50, LAUNCHES], level)
    ]
    columns = {
        "process": 0 * level,
        "thread": thread,
        "start": start,
        "end": start + np.take(widths, level) - level * 100,
        "depth": level,
    }
    nothing = {name: pa.array(np.zeros(len(order), bool)) for name in ("unfinished", "inherited", "clipped")}
    rows = {
        "id": np.arange(len(order)),
        **{name: values[order] for name, values in columns.items()},
        "parent": pa.array(parent[order], mask=(level == 0)[order]),
        "message": texts(
            np.where(level == 2, 2 + number % 40, level)[order],
            ["epoch", "step", *(f"op{n}" for n in range(40))],
        ),
        "style": texts(0 * level, ["PushPop"]),
        **nothing,
    }
    for first in range(0, len(order), GROUP):
        write(part, "nvtx_ranges", {name: values[first : first + GROUP] for name, values in rows.items()})
    launch = np.arange(kernels)
    around: Int64Array = ids[offsets[2] + launch % THREADS * counts[2] + launch // THREADS]
    return around


def _place(number: Int64Array, thread: Int64Array) -> dict[str, Int64Array]:
    return {
        "id": number,
        "process": 0 * number,
        "device": thread % DEVICES,
        "context": 1 + thread % DEVICES,
        "stream": 7 + thread,
    }


def launches(number: Int64Array, names: int, rng: np.random.Generator) -> dict[str, Int64Array | pa.Array]:
    """What kernels are called and launched with: a few of the `names` are frequent, most are rare."""
    code = (rng.zipf(1.3, len(number)) % names).astype(np.int64)
    full = [f"void library::operation<{'float, ' * (n % 40)}{n}>(float*, int)" for n in range(names)]
    return {
        "name": texts(code, [f"operation{n}" for n in range(names)]),
        "demangled": texts(code, full),
        "grid_x": 1 + code % 7 * 32,
        "block_x": np.full(len(number), 256),
        **{name: np.full(len(number), 1) for name in ("grid_y", "grid_z", "block_y", "block_z")},
        "registers": np.full(len(number), 64),
        "static_shared": 0 * number,
        "dynamic_shared": 0 * number,
    }


assert THREADS < THREADS_PER_PROCESS
