"""Times `warplens analyze` with all rules, and `warplens diff`, on a report of 10^7 rows."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _asking import make_report, rows_of
from harness import Row

EVENTS = 10_000_000
BUDGETS_S = {"analyze": 10.0, "diff": 8.0}
BUDGETS_GB = {"diff": 1.5}


def run(quick: bool) -> list[Row]:
    """Time the commands against DuckDB's bare count and sum of the same tables, in turn; the best of three."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        path = Path(directory) / "bench.warplens"
        events = make_report(path, EVENTS // 10 if quick else EVENTS)
        commands = {
            "analyze": [sys.executable, "-m", "warplens", "analyze", str(path)],
            "diff": [sys.executable, "-m", "warplens", "diff", "--no-rules", str(path), str(path)],
        }
        return rows_of(
            path, events, commands, {} if quick else BUDGETS_S, {} if quick else BUDGETS_GB, 1 if quick else 3
        )
