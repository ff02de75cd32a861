"""Imports an SQLite export of Nsight Systems: events per second and memory, beside Python's sqlite3.

A quarter of the events are kernels, a quarter API calls that launched them, the rest NVTX ranges, in two processes. Each size is
imported in a separate process, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from harness import Row
from warplens.importers.importing import import_file

PROCESSES = 2
KERNELS = 200
BUDGET = 2e5  # events per second and core
BUDGET_RSS = 1 << 30
_TABLES = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    "CUPTI_ACTIVITY_KIND_RUNTIME": '"start", "end", eventClass, globalTid, correlationId, nameId, returnValue',
    "CUPTI_ACTIVITY_KIND_KERNEL": '"start", "end", deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName, '
    "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, "
    "localMemoryTotal",
    "NVTX_EVENTS": '"start", "end", eventType, globalTid, text TEXT, textId, domainId',
}


def run(quick: bool) -> list[Row]:
    """Measure 10^6 events, and 4 * 10^6 unless `quick`."""
    rows = []
    for size in (1_000_000,) if quick else (1_000_000, 4_000_000):
        with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
            path = make_export(Path(folder) / "run.sqlite", size)
            output = subprocess.run(
                [sys.executable, __file__, str(path)], check=True, capture_output=True, text=True
            ).stdout
            found = json.loads(output.splitlines()[-1])
            begin = time.process_time()
            with closing(sqlite3.connect(path)) as connection:
                for table in _TABLES:
                    connection.execute(f"SELECT * FROM {table}").fetchall()
            floor = time.process_time() - begin
        label = f"import {size:.0e} events of nsys".replace("e+0", "e")
        rows += [
            Row(
                f"{label}: per second and core",
                size / found["cpu"],
                "events/s",
                budget=BUDGET,
                budget_on="at least",
            ),
            Row(
                f"{label}: CPU per event",
                found["cpu"] / size * 1e9,
                "ns",
                "sqlite3 reads the same rows",
                floor / size * 1e9,
            ),
            Row(f"{label}: wall", found["wall"], "s"),
            Row(
                f"{label}: peak memory",
                found["rss"] / 2**20,
                "MiB",
                budget=BUDGET_RSS / 2**20,
                budget_on="value",
            ),
        ]
    return rows


def make_export(path: Path, events: int) -> Path:
    """Write an export with this number of events."""
    quarter = events // 4
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for table, columns in _TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
        names = [
            (number, f"void at::native::elementwise_kernel<{number}, float, Functor<{number}>>(int)")
            for number in range(KERNELS)
        ]
        connection.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [*names, (1000, "cudaLaunchKernel_v7000"), (1001, "step")]
        )

        def fill(table: str, rows: object, width: int) -> None:
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)  # type: ignore[arg-type]

        pids = [(1 << 48) | (100 + number) << 24 for number in range(PROCESSES)]
        shape = (32, 64, 1, 1, 128, 1, 1, 0, 0, 0, 0)
        turns = [(number, number * 5_000, pids[number % PROCESSES]) for number in range(quarter)]
        fill(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            ((at, at + 900, 0, pid + 1, number + 1, 1000, 0) for number, at, pid in turns),
            7,
        )
        fill(
            "CUPTI_ACTIVITY_KIND_KERNEL",
            (
                (at + 2_000, at + 4_500, 0, 1, 7, n + 1, pid, n % KERNELS, n % KERNELS, *shape)
                for n, at, pid in turns
            ),
            20,
        )
        fill(
            "NVTX_EVENTS",
            (
                (at - 100, at + 1_500, 59, pid + 1, f"aten::op, op_id = {number}", None, 0)
                for number, at, pid in turns
            ),
            7,
        )
        fill("NVTX_EVENTS", ((at - 50, at + 1_000, 59, pid + 1, None, 1001, 0) for _, at, pid in turns), 7)
        connection.commit()
    return path


def main() -> None:
    """Import the file named on the command line and print what it took."""
    source = Path(sys.argv[1])
    begin, cpu = time.perf_counter(), time.process_time()
    import_file(source, source.with_suffix(".warplens"))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "wall": time.perf_counter() - begin,
                "cpu": time.process_time() - cpu,
                "rss": usage.ru_maxrss * 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
