"""Times each CPU table of `stats`, and profiles of one phase, on a report with 10^6 rows in each table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from _cpu_reports import make_cpu_report
from harness import Row, quickest
from warplens import catalog
from warplens.report import Selection
from warplens.report import open as open_report

ROWS = 1_000_000
BUDGET_S = 1.0
_BARE = 'SELECT name, count(*), sum("end" - start) FROM osrt GROUP BY name'
_PHASE = Selection.parse(None, "step")
_WHOLE = Selection()
_CASES: dict[str, tuple[str, Selection, dict[str, Any]]] = {
    **{
        name: (name, _WHOLE, {})
        for name in (
            "osrt_sum",
            "osrt_trace",
            "file_access_sum",
            "thread_state_sum",
            "gil_sum",
            "gc_sum",
            "import_sum",
            "python_calls_sum",
        )
    },
    "cpu_hotspots": ("cpu_hotspots", _WHOLE, {"kind": "python"}),
    "cpu_hotspots:tree=top-down": ("cpu_hotspots", _WHOLE, {"kind": "python", "tree": "top-down"}),
    "cpu_hotspots:tree=bottom-up": ("cpu_hotspots", _WHOLE, {"kind": "python", "tree": "bottom-up"}),
    "cpu_hotspots:by=thread:tree=top-down": (
        "cpu_hotspots",
        _WHOLE,
        {"kind": "python", "tree": "top-down", "by": "thread"},
    ),
    "cpu_hotspots, 40,000 ranges": ("cpu_hotspots", _PHASE, {"kind": "python"}),
    "osrt_sum, 40,000 ranges": ("osrt_sum", _PHASE, {}),
    "gil_sum, 40,000 ranges": ("gil_sum", _PHASE, {}),
}


def run(quick: bool) -> list[Row]:
    """Time every table against DuckDB's bare count and sum of the calls, in turn; the best of three."""
    rows = ROWS // 10 if quick else ROWS
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        report = open_report(make_cpu_report(Path(directory) / "bench.warplens", rows))
        work: dict[str, Callable[[], object]] = {"": partial(report.sql, _BARE)}
        for name, (stat, selection, options) in _CASES.items():
            work[name] = partial(
                catalog.find("stats.tables", stat).load().table, report, selection, **options
            )
        best = quickest(work)
        report.close()
    budget = None if quick else BUDGET_S
    what = f"of {rows:,} rows"
    return [
        Row(f"{name} {what}", best[name], "s", "DuckDB count and sum alone", best[""], budget, "value")
        for name in work
        if name
    ]
