"""Times `warplens stats` on 5·10^7 rows of kernels, calls, copies and ranges: default tables, single tables."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _asking import make_report, rows_of
from harness import Row

EVENTS = 50_000_000
ALL_S, ONE_S, MEMORY_GB = 15.0, 1.5, 1.5
ROUNDS = 3
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


def run(quick: bool) -> list[Row]:
    """Time whole commands against DuckDB's bare count and sum of the same tables, in turn; the best of three."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        path = Path(directory) / "bench.warplens"
        events = make_report(path, EVENTS // 20 if quick else EVENTS)
        stats = [sys.executable, "-m", "warplens", "stats", str(path)]
        commands = {"all tables": stats, **{name: [*stats, "-r", name] for name in (*_ONE, *_MORE)}}
        seconds = {} if quick else {"all tables": ALL_S, **dict.fromkeys(_ONE, ONE_S)}
        return rows_of(
            path,
            events,
            commands,
            seconds,
            {} if quick else dict.fromkeys(commands, MEMORY_GB),
            1 if quick else ROUNDS,
        )
