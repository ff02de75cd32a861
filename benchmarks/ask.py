"""`warpline stats` on 5·10^7 rows of kernels, calls, copies and ranges: all tables that come unasked, and single ones."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from _command import measure
from harness import Row

EVENTS = 50_000_000
ALL_S, ONE_S, MEMORY_GB = 15.0, 1.5, 1.5
ROUNDS = 3
_ROWS_PER_KERNEL = 3.166  # its call, an eighth of a copy, and ranges
_TABLES = ("kernels", "cuda_api", "memcpys", "nvtx_ranges")
_ONE = ("cuda_gpu_kern_sum", "nvtx_sum")
_MORE = (
    "gpu_utilization",
    "temporal_breakdown",
    "comm_comp_overlap",
    "kernel_breakdown",
    "queue_length",
    "launch_latency",
    "memory_bandwidth",
)
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
from warpline.query import open
report = open(make_cuda_report(Path(sys.argv[2]), int(sys.argv[3])))
print(sum(report.tables[table] for table in sys.argv[4:]))
"""


def run(quick: bool) -> list[Row]:
    """Time whole commands against DuckDB's bare count and sum of the same tables, in turn; the best of three."""
    with tempfile.TemporaryDirectory(prefix="warpline-bench-") as directory:
        path = Path(directory) / "bench.warpline"
        kernels = str(int((EVENTS // 20 if quick else EVENTS) / _ROWS_PER_KERNEL))
        make = [sys.executable, "-c", _MAKE, str(Path(__file__).parent), str(path), kernels, *_TABLES]
        events = int(subprocess.run(make, check=True, stdout=subprocess.PIPE, text=True).stdout)
        stats = [sys.executable, "-m", "warpline", "stats", str(path)]
        commands = {"all tables": stats, **{name: [*stats, "-r", name] for name in (*_ONE, *_MORE)}}
        commands[""] = [sys.executable, "-c", _BARE, str(path), *_TABLES]
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(1 if quick else ROUNDS):
            for name, command in commands.items():
                taken[name].append(measure(command))
    best = {name: min(wall for wall, _ in runs) for name, runs in taken.items()}
    memory = {name: max(used for _, used in runs) for name, runs in taken.items()}
    rows = []
    for name in (name for name in commands if name):
        budget = None if quick else ALL_S if name == "all tables" else ONE_S if name in _ONE else None
        what, floor = f"{name}, {events:,} rows", "DuckDB count and sum alone"
        rows.append(Row(f"{what}: wall", best[name], "s", floor, best[""], budget, "value"))
        rows.append(Row(f"{what}: memory", memory[name], "GB", floor, memory[""], None if quick else MEMORY_GB, "value"))
    return rows
