"""Rows per second of `warplens stats -r nvtx_pushpop_trace -f csv`, beside DuckDB's CSV writer."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _reports import make_report
from harness import Row

_BARE = """
import duckdb, sys
duckdb.sql(f"COPY (SELECT * FROM '{sys.argv[1]}' ORDER BY start) TO '{sys.argv[2]}' (HEADER)")
"""


def run(quick: bool) -> list[Row]:
    """Write every range with its place in the nesting; the peer sorts and writes the bare table, without nesting or names."""
    number = 200_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        folder = Path(directory)
        report = make_report(folder / "bench.warplens", number)
        table = next(report.glob("tables/nvtx_ranges/*.parquet"))
        ours, bare = [], []
        for turn in range(3):
            command = [
                "-m",
                "warplens",
                "stats",
                "-q",
                "-r",
                "nvtx_pushpop_trace",
                "-f",
                "csv",
                "-o",
                str(folder / f"ours{turn}"),
                str(report),
            ]
            ours.append(_measure([sys.executable, *command]))
            bare.append(_measure([sys.executable, "-c", _BARE, str(table), str(folder / f"bare{turn}.csv")]))
    peer = "DuckDB, the table alone, rows/s"
    fastest, memory = number / min(wall for wall, _ in ours), max(peak for _, peak in ours)
    return [
        Row(f"{number:,} rows", fastest, "rows/s", peer, number / min(wall for wall, _ in bare)),
        Row(f"{number:,} rows, memory", memory, "GB", "DuckDB", max(peak for _, peak in bare)),
    ]


def _measure(command: list[str]) -> tuple[float, float]:
    """Return wall seconds and peak GB of a command that must succeed."""
    before = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} … exited with {process.returncode}")
    return wall, usage.ru_maxrss * 1024 / 1e9
