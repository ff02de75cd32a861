"""`warpline analyze` with all rules, and `warpline diff`: whole commands on a report of 10^7 rows of kernels, calls, copies and ranges."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _command import measure
from _cuda_reports import make_cuda_report
from harness import Row
from warpline.query import open as open_report

EVENTS = 10_000_000
BUDGET_S = 10.0
_ROWS_PER_KERNEL = 3.17  # its call, an eighth of a copy, and ranges
_TABLES = ("kernels", "cuda_api", "memcpys", "nvtx_ranges")
_BARE = """
import glob, sys, duckdb
for table in sys.argv[2:]:
    files = glob.glob(f"{sys.argv[1]}/tables/{table}/*.parquet")
    duckdb.sql(f'SELECT process, count(*), sum("end" - "start") FROM read_parquet({files}) GROUP BY ALL').fetchall()
"""


def run(quick: bool) -> list[Row]:
    """Time the commands against DuckDB's bare count and sum of the same tables, in turn; the best of three."""
    with tempfile.TemporaryDirectory(prefix="warpline-bench-") as directory:
        path = make_cuda_report(Path(directory) / "bench.warpline", int((EVENTS // 10 if quick else EVENTS) / _ROWS_PER_KERNEL))
        with open_report(path) as report:
            events = sum(report.tables[table] for table in _TABLES)
        commands = {
            "analyze": [sys.executable, "-m", "warpline", "analyze", str(path)],
            "diff": [sys.executable, "-m", "warpline", "diff", "--no-rules", str(path), str(path)],
            "": [sys.executable, "-c", _BARE, str(path), *_TABLES],
        }
        taken = {name: [measure(command) for _ in range(3)] for name, command in commands.items()}
    best = {name: min(wall for wall, _ in runs) for name, runs in taken.items()}
    memory = {name: max(used for _, used in runs) for name, runs in taken.items()}
    floor = "DuckDB count and sum alone"
    rows = []
    for name, budget in (("analyze", None if quick else BUDGET_S), ("diff", None)):
        what = f"{name}, {events:,} rows"
        rows.append(Row(f"{what}: wall", best[name], "s", floor, best[""], budget, "value"))
        rows.append(Row(f"{what}: memory", memory[name], "GB", floor, memory[""], None, "value"))
    return rows
