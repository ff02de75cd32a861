"""Times the in-kernel tables of `stats` on 10^7 regions, beside DuckDB's bare count and sum.

CPU: of all threads. Wall: as quick as that machine had time for.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _intrakernel_reports import make_intrakernel_report
from harness import Row
from warplens import catalog
from warplens.report import Selection
from warplens.report import open as open_report

EVENTS = 10_000_000
LEAST = {
    "intrakernel_sum": 5e6,
    "intrakernel_overlap": 2e6,
    "intrakernel_roles": 2e6,
}  # regions per second of CPU
_BARE = 'SELECT tag, count(*), sum("end" - "start") FROM intrakernel_events GROUP BY tag'


def run(quick: bool) -> list[Row]:
    """Time every table, in turn; the best of three."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        report = open_report(
            make_intrakernel_report(Path(directory) / "bench.warplens", EVENTS // 10 if quick else EVENTS)
        )
        events = report.tables["intrakernel_events"]
        work: dict[str, Callable[[], object]] = {"": partial(report.sql, _BARE)}
        for unit in catalog.units("stats.tables"):
            if unit.id.startswith("intrakernel"):
                work[unit.id] = partial(unit.load().table, report, Selection())
        cpu, wall = _best(work)
        report.close()
    what, bare = f"of {events:,} regions", "DuckDB count and sum alone"
    rows = []
    for name in filter(None, work):
        least = None if quick else LEAST.get(name)
        rows.append(
            Row(
                f"{name} {what}: CPU",
                events / cpu[name],
                "regions/s",
                bare,
                events / cpu[""],
                least,
                "at least",
            )
        )
        rows.append(Row(f"{name} {what}: wall", events / wall[name], "regions/s", bare, events / wall[""]))
    return rows


def _best(
    work: dict[str, Callable[[], object]], rounds: int = 3
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the least seconds of CPU, and of the clock, of each function."""
    cpu, wall = dict.fromkeys(work, float("inf")), dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, function in work.items():
            began, spent = time.perf_counter(), time.process_time()
            function()
            cpu[name], wall[name] = (
                min(cpu[name], time.process_time() - spent),
                min(wall[name], time.perf_counter() - began),
            )
    return cpu, wall
