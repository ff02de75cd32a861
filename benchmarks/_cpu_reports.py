"""Writes CPU reports for benchmarks, through the real writer and with the real encodings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from _tables import texts, write
from warplens.arrays import Int64Array
from warplens.storage.writer import THREADS_PER_PROCESS, Facts, PartWriter

THREADS = 32
FRAMES = 20_000
DEPTH = 40
GROUP = 1 << 17
RANGES = 10_000  # of each of four threads
_STEP = 10_000  # ns from row to row, of one thread
_CALLS = (
    "read",
    "write",
    "poll",
    "epoll_wait",
    "pthread_mutex_lock",
    "pthread_cond_wait",
    "sem_wait",
    "recvmsg",
    "openat",
    "nanosleep",
)


def make_cpu_report(path: Path, rows: int) -> Path:
    """Write a report with `rows` rows in each large table: samples, osrt, file_access, thread_states, gil, python_calls; fewer gc, imports.

    32 threads; stacks of up to 40 frames; four threads with 10,000 ranges `step` each; traced calls of three levels.
    """
    rng = np.random.default_rng(12)
    length = (rows // THREADS + 8) * _STEP
    facts = Facts("bench-1-1", "bench", "boot", command=["bench"], origin=0, end=length)
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
        _ranges(part, length)
        _frames(part, rng)
        for first in range(0, rows, GROUP):
            number = np.arange(first, min(first + GROUP, rows))
            _happenings(part, number, rng)
        few = np.arange(rows // 100)
        place = _place(few, rng)
        nothing = {"collected": few % 1000, "uncollectable": 0 * few}
        write(part, "gc", {**place, "generation": few % 3, **nothing})
        names = texts(few % 3000, [f"package{n % 40}.module{n}" for n in range(3000)])
        own = place["end"] - place["start"]
        write(
            part,
            "imports",
            {**place, "name": names, "self": own, "depth": 0 * few, "failed": pa.array(few < 0)},
        )
        part.commit(facts)
    return path


def _happenings(part: PartWriter, number: Int64Array, rng: np.random.Generator) -> None:
    place = _place(number, rng)
    length = place["end"] - place["start"]
    count = 1 + rng.zipf(2.0, len(number)) % 50
    stack = 1 + rng.zipf(1.2, len(number)) % FRAMES
    ran = pa.array(rng.random(len(number)) < 0.7)
    ticks = {"count": count, "weight": count * 1_000_000}
    write(
        part,
        "samples",
        {
            **place,
            **ticks,
            "kind": texts(number % 4 // 3, ["python", "native"]),
            "on_cpu": ran,
            "stack": stack,
        },
    )
    state = texts(number % 3, ["running", "blocked", "runnable"])
    reason = texts(number % 10, list(_CALLS))
    write(
        part,
        "thread_states",
        {**place, "state": state, "cpu": number % 16, "exact": pa.array(number >= 0), "reason": reason},
    )
    code = rng.zipf(1.5, len(number)) % len(_CALLS)
    path = texts(
        rng.zipf(1.3, len(number)) % 3000, [f"/data/some/folder/shard-{n:05}.bin" for n in range(3000)]
    )
    call = {**place, "name": texts(code, list(_CALLS)), "bytes": 4096 + 0 * number}
    write(part, "osrt", {**call, "group": texts(0 * number, ["file"]), "result": 0 * number, "target": path})
    write(
        part,
        "file_access",
        {**call, "operation": texts(number % 4, ["open", "read", "write", "seek"]), "path": path},
    )
    # one holds the lock, for a while after another; the wait before it
    turn = number // 2
    begin, hold = turn * 300, (number % 2 == 0).astype(np.int64)
    times = {
        "start": np.where(hold, begin, np.maximum(begin - 2_000, 0)),
        "end": np.where(hold, begin + 280, begin),
    }
    amounts = {"held": hold * 280, "waited": (1 - hold) * 2_000, "holds": hold, "waits": 1 - hold}
    keys = {"id": number, "process": 0 * number, "thread": turn * 7 % THREADS, "interpreter": 0 * number}
    write(part, "gil", {**keys, **times, "state": texts(hold, ["wait", "hold"]), **amounts})
    write(part, "python_calls", _traced(number, rng) | {"process": 0 * number, "id": number})
    assert (length > 0).all()


def _traced(number: Int64Array, rng: np.random.Generator) -> dict[str, Int64Array | pa.Array]:
    """Calls in calls: of each 20 rows of a thread, one is around four, and each of those around four or less."""
    group, within = number // (20 * THREADS), number // THREADS % 20
    level = np.where(within == 0, 0, np.where(within % 5 == 0, 1, 2))
    level = np.where(within == 1, 1, level)
    start = group * 20 * _STEP + within * _STEP
    last = np.where(level == 0, 20, np.where(level == 1, within // 5 * 5 + 5, within + 1))
    above = np.where(level == 0, -1, np.where(level == 1, 0, np.maximum(within // 5 * 5, 1)))
    parent = pa.array((group * 20 + above) * THREADS + number % THREADS, mask=level == 0)
    code = rng.zipf(1.4, len(number)) % 300
    flags = {"clipped": pa.array(number < 0), "failed": pa.array(number < 0)}
    place = {
        "thread": number % THREADS,
        "start": start,
        "end": group * 20 * _STEP + last * _STEP - level * 100,
        "depth": level,
    }
    names = {
        "name": texts(code, [f"function{n}" for n in range(300)]),
        "file": texts(code % 20, [f"/src/module{n}.py" for n in range(20)]),
    }
    return {
        **place,
        "parent": parent,
        "kind": texts(0 * number, ["function"]),
        **names,
        "line": code,
        **flags,
    }


def _place(number: Int64Array, rng: np.random.Generator) -> dict[str, Int64Array]:
    thread = number % THREADS
    start = number // THREADS * _STEP + thread
    length = np.clip(np.exp(rng.normal(7.5, 1, len(number))), 100, _STEP - 100).astype(np.int64)
    return {"id": number, "process": 0 * number, "thread": thread, "start": start, "end": start + length}


def _frames(part: PartWriter, rng: np.random.Generator) -> None:
    number = np.arange(1, FRAMES + 1)
    depth = np.minimum(np.log2(number).astype(np.int64) * 3, DEPTH)
    parent = np.maximum(number - 1 - rng.integers(0, 50, FRAMES), 0)
    code = rng.integers(0, 3000, FRAMES)
    python = code % 3 > 0
    columns = {
        "frame": number,
        "process": 0 * number,
        "parent": pa.array(parent, mask=(parent == 0) | (number % DEPTH == 0)),
        "depth": depth,
        "kind": texts(python.astype(np.int64), ["native", "python"]),
        "function": texts(code, [f"some_function_{n}" for n in range(3000)]),
        "module": pa.DictionaryArray.from_arrays(
            pa.array(code % 30, pa.int32(), mask=python), pa.array([f"lib{n}.so" for n in range(30)])
        ),
        "file": texts(
            code % 200, [f"/usr/lib/python3/site-packages/package/module{n}.py" for n in range(200)]
        ),
        "line": code + rng.integers(0, 20, FRAMES),
        "first_line": code,
    }
    write(part, "frames", columns)


def _ranges(part: PartWriter, length: int) -> None:
    thread, number = np.arange(4 * RANGES) % 4, np.arange(4 * RANGES) // 4
    start = number * (length // RANGES)
    nothing = {name: pa.array(np.zeros(len(start), bool)) for name in ("unfinished", "inherited", "clipped")}
    place = {
        "id": np.arange(len(start)),
        "process": 0 * start,
        "thread": thread,
        "start": start,
        "end": start + length // RANGES // 2,
    }
    names = {"message": texts(0 * start, ["step"]), "style": texts(0 * start, ["PushPop"])}
    write(part, "nvtx_ranges", {**place, "depth": 0 * start, **names, **nothing})


assert THREADS < THREADS_PER_PROCESS
