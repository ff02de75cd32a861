"""Times `warplens stats -r nvtx_sum`, from process start to the printed table."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _command import measure
from _reports import make_report
from harness import Row

BUDGETS = {10_000_000: 1.0, 50_000_000: 2.5}
MEMORY_GB = 1.0
_BARE = """
import duckdb, sys
rows = duckdb.sql(f'''SELECT domain, message, style, count(*), sum("end" - "start") FROM '{sys.argv[1]}' GROUP BY ALL''').fetchall()
print(len(rows))
"""


def run(quick: bool) -> list[Row]:
    """Time the command against DuckDB's bare count and sum (no median, no deviation) over the same file, in turn."""
    rows = []
    for number in (1_000_000,) if quick else (1_000_000, *BUDGETS):
        with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
            report = make_report(Path(directory) / "bench.warplens", number)
            table = next(report.glob("tables/nvtx_ranges/*.parquet"))
            command = [sys.executable, "-m", "warplens", "stats", "-r", "nvtx_sum", str(report)]
            bare = [sys.executable, "-c", _BARE, str(table)]
            ours, floor = [], []
            for _ in range(5):
                ours.append(measure(command))
                floor.append(measure(bare))
        wall, memory = min(wall for wall, _ in ours), max(memory for _, memory in ours)
        peer, peer_memory = min(wall for wall, _ in floor), max(memory for _, memory in floor)
        what = f"{number:,} ranges"
        name = "DuckDB count and sum alone"
        rows.append(Row(f"{what}, wall", wall, "s", name, peer, BUDGETS.get(number), "value"))
        rows.append(Row(f"{what}, memory", memory, "GB", name, peer_memory, MEMORY_GB, "value"))
    return rows
