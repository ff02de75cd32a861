"""Ranges per second to a Perfetto trace and back, beside only reading the same columns."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from _reports import make_report
from harness import Row
from warplens import catalog
from warplens.exporters.tracks import RANGE_COLUMNS, batches
from warplens.importers.importing import import_file
from warplens.report import open as open_report


def run(quick: bool) -> list[Row]:
    """Time both exporters; the floor reads the Parquet columns and drops them."""
    number = 500_000 if quick else 5_000_000
    few = number // 10
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        folder = Path(directory)
        report = open_report(make_report(folder / "bench.warplens", number))
        small = open_report(make_report(folder / "small.warplens", few))
        read: list[float] = []
        perfetto: list[float] = []
        chrome: list[float] = []
        back: list[float] = []
        for _ in range(3):
            before = time.perf_counter()
            rows = sum(batch.num_rows for batch in batches(report, "nvtx_ranges", RANGE_COLUMNS))
            read.append(number / (time.perf_counter() - before))
            if rows != number:
                raise RuntimeError(f"read {rows} of {number} ranges")
            for unit, target, count, rates in (
                ("perfetto", report, number, perfetto),
                ("chrome", small, few, chrome),
            ):
                exporter = catalog.find("exporters.formats", unit).load()
                before = time.perf_counter()
                exporter.write(target, folder / f"out{exporter.SUFFIX}")
                rates.append(count / (time.perf_counter() - before))
        for attempt in range(3):
            before = time.perf_counter()
            import_file(folder / "out.perfetto-trace", folder / f"back{attempt}.warplens")
            back.append(number / (time.perf_counter() - before))
    peer = "reading alone, ranges/s"
    return [
        Row(
            f"perfetto, {number:,} ranges", max(perfetto), "ranges/s", peer, max(read), 1_000_000, "at least"
        ),
        Row(f"perfetto, imported again, {number:,} ranges", max(back), "ranges/s", peer, max(read)),
        Row(f"chrome, {few:,} ranges", max(chrome), "ranges/s", peer, max(read)),
    ]
