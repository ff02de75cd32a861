"""Times whole commands on a large CUDA report, beside DuckDB's bare count and sum of the same tables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from _command import measure
from harness import Row

ROWS_PER_KERNEL = 3.166  # its call, an eighth of a copy, and ranges
FLOOR = "DuckDB count and sum alone"
_TABLES = ("kernels", "cuda_api", "memcpys", "nvtx_ranges")
_BARE = """
import glob, sys, duckdb
for table in sys.argv[2:]:
    files = glob.glob(f"{sys.argv[1]}/tables/{table}/*.parquet")
    duckdb.sql(f'SELECT process, count(*), sum("end" - "start") FROM read_parquet({files}) GROUP BY ALL').fetchall()
"""
# A command's peak memory is at least what its parent has: what makes the report must not be that.
_MAKE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from _cuda_reports import make_cuda_report
from warplens.report import open
report = open(make_cuda_report(Path(sys.argv[2]), int(sys.argv[3])))
print(sum(report.tables[table] for table in sys.argv[4:]))
"""


def make_report(path: Path, events: int) -> int:
    """Make a report of about `events` rows of kernels, calls, copies and ranges at `path`, and return how many it has."""
    kernels = str(int(events / ROWS_PER_KERNEL))
    make = [sys.executable, "-c", _MAKE, str(Path(__file__).parent), str(path), kernels, *_TABLES]
    return int(subprocess.run(make, check=True, stdout=subprocess.PIPE, text=True).stdout)


def rows_of(
    path: Path,
    events: int,
    commands: Mapping[str, Sequence[str]],
    seconds: Mapping[str, float],
    gigabytes: Mapping[str, float],
    rounds: int,
) -> list[Row]:
    """Return wall (best of `rounds`, in turns) and memory of each command; `seconds`, `gigabytes`: budgets by name."""
    every = {**commands, "": [sys.executable, "-c", _BARE, str(path), *_TABLES]}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
    for _ in range(rounds):
        for name, command in every.items():
            taken[name].append(measure(command))
    best = {name: min(wall for wall, _ in runs) for name, runs in taken.items()}
    memory = {name: max(used for _, used in runs) for name, runs in taken.items()}
    rows = []
    for name in commands:
        what = f"{name}, {events:,} rows"
        rows.append(Row(f"{what}: wall", best[name], "s", FLOOR, best[""], seconds.get(name), "value"))
        rows.append(
            Row(f"{what}: memory", memory[name], "GB", FLOOR, memory[""], gigabytes.get(name), "value")
        )
    return rows
