"""Writes reports for benchmarks, through the real writer and with the real encodings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from warplens.storage.schema import schema
from warplens.storage.writer import RANGES_PER_PROCESS, Facts, PartWriter

NAMES = 200
THREADS = 8
GROUP = 24 * 11_000  # whole triples of 8 threads, and of 200


def make_report(path: Path, rows: int, threads: int = THREADS) -> Path:
    """Write a report of `rows` push/pop ranges: some threads, three levels, 200 names, two domains, log-normal durations."""
    rng = np.random.default_rng(7)
    facts = Facts("bench-1-1", "bench", "boot", command=["bench"], origin=0, end=rows * 2_000)
    names = pa.array([f"operation {number}" for number in range(NAMES)])
    domains = pa.array(["library"])
    styles = pa.array(["PushPop"])
    empty = pa.array([], pa.string())
    with PartWriter(path, facts.id, facts.host) as part:
        common = {"host": "bench", "start": 0, "end": facts.end}
        part.write(
            "processes",
            [
                {
                    **common,
                    "process": 0,
                    "pid": 1,
                    "parent_pid": 0,
                    "executable": "bench",
                    "command": "bench",
                    "primary": True,
                    "exited": True,
                }
            ],
        )
        part.write(
            "threads",
            [
                {"thread": n, "process": 0, "tid": n + 1, "name": f"worker {n}", "start": 0}
                for n in range(threads)
            ],
        )
        for first in range(0, rows, GROUP):
            count = min(GROUP, rows - first)
            number = np.arange(first, first + count)
            thread, level = number % threads, (number // threads) % 3
            # One triple per thread and 6 us * threads: an outer range, one inside it, one inside that.
            start = number // (3 * threads) * (6_000 * threads) + level * 500 + thread
            inner = np.clip(np.exp(rng.normal(7, 1, count)), 100, 14_000).astype(np.int64)
            end = start + inner + (2 - level) * 15_000
            parent = np.where(level > 0, number - threads, -1)
            order = np.argsort(start, kind="stable")
            ids = np.empty(count, np.int64)
            ids[order] = np.arange(first, first + count)
            mapped = ids[np.clip(parent - first, 0, count - 1)]
            code = rng.integers(0, NAMES, count).astype(np.int32)
            columns = {
                "id": pa.array(np.arange(first, first + count)),
                "process": pa.array(np.zeros(count, np.int64)),
                "thread": pa.array(thread[order]),
                "start": pa.array(start[order]),
                "end": pa.array(end[order]),
                "domain": pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(count, np.int32), mask=(code % 2 == 0)), domains
                ),
                "category": pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()), empty),
                "message": pa.DictionaryArray.from_arrays(pa.array(code), names),
                "color": pa.array(np.full(count, 0xFF76B900, np.uint32)),
                "payload_int": pa.array(number, mask=code % 4 != 0),
                "style": pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), styles),
                "depth": pa.array(level[order].astype(np.int32)),
                "parent": pa.array(mapped[order], mask=(parent < 0)[order]),
                **{name: pa.array(np.zeros(count, bool)) for name in ("unfinished", "inherited", "clipped")},
            }
            wanted = schema("nvtx_ranges")
            arrays = [
                columns[field.name] if field.name in columns else pa.nulls(count, field.type)
                for field in wanted
            ]
            part.write("nvtx_ranges", pa.Table.from_arrays(arrays, schema=wanted))
        part.commit(facts)
    assert rows <= RANGES_PER_PROCESS
    return path
