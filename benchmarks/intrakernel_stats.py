"""The stats of regions inside kernels on a report of 10^7 of them: regions per second, beside DuckDB's bare count and sum."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _intrakernel_reports import make_intrakernel_report
from harness import Row, quickest
from warpline import catalog
from warpline.query import Selection
from warpline.query import open as open_report

EVENTS = 10_000_000
LEAST = {"intrakernel_sum": 5e6}  # regions per second
_BARE = 'SELECT tag, count(*), sum("end" - "start") FROM intrakernel_events GROUP BY tag'


def run(quick: bool) -> list[Row]:
    """Time every table, in turn; the best of three."""
    with tempfile.TemporaryDirectory(prefix="warpline-bench-") as directory:
        report = open_report(make_intrakernel_report(Path(directory) / "bench.warpline", EVENTS // 10 if quick else EVENTS))
        events = report.tables["intrakernel_events"]
        work: dict[str, Callable[[], object]] = {"": partial(report.sql, _BARE)}
        for unit in catalog.units("stats.tables"):
            if unit.id.startswith("intrakernel"):
                work[unit.id] = partial(unit.load().table, report, Selection())
        best = quickest(work)
        report.close()
    what, bare = f"of {events:,} regions", "DuckDB count and sum alone"
    return [
        Row(f"{name} {what}", events / best[name], "regions/s", bare, events / best[""], None if quick else LEAST.get(name), "at least")
        for name in work
        if name
    ]
