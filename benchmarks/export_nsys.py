"""Export to nsys's SQLite: rows per CPU second and memory, beside Python's sqlite3 with the same rows.

API calls, kernels, copies and NVTX ranges of one program. Each size is exported in a separate process, so that its peak memory is its
own: it must not grow with the report.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _cuda_reports import make_cuda_report
from harness import Row
from warplens import catalog
from warplens.report import open as open_report

BUDGET = 3e5  # rows per second and core
_TABLES = (
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "NVTX_EVENTS",
)


def run(quick: bool) -> list[Row]:
    """Measure reports of 10^5 and 5 * 10^5 kernels, or the first alone if `quick`."""
    rows = []
    for kernels in (100_000,) if quick else (100_000, 500_000):
        with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
            report = make_cuda_report(Path(folder) / "run.warplens", kernels)
            output = subprocess.run(
                [sys.executable, __file__, str(report)], check=True, capture_output=True, text=True
            ).stdout
            found = json.loads(output.splitlines()[-1])
            written, floor = _plain(Path(folder) / "run.sqlite", Path(folder) / "plain.sqlite")
        label, budget = (
            f"export {written:,} rows",
            BUDGET if kernels >= 500_000 else None,
        )  # a small one is mostly starting
        rows += [
            Row(
                f"{label}: per second and core",
                written / found["cpu"],
                "rows/s",
                "sqlite3 executemany",
                written / floor,
                budget,
                "at least",
            ),
            Row(f"{label}: peak memory", found["rss"] / 2**20, "MiB"),
        ]
    return rows


def _plain(made: Path, other: Path) -> tuple[int, float]:
    """Write the rows of a file into another one; return how many, and how much CPU writing alone took (s)."""
    count, took = 0, 0.0
    with (
        closing(sqlite3.connect(made)) as source,
        closing(sqlite3.connect(other, isolation_level=None)) as target,
    ):
        for pragma in ("journal_mode = OFF", "synchronous = OFF"):
            target.execute(f"PRAGMA {pragma}")
        for table in _TABLES:
            made_by = source.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table]).fetchone()
            if made_by is None:
                continue
            target.execute(made_by[0])
            cursor = source.execute(f"SELECT * FROM {table}")
            marks = ", ".join("?" * len(cursor.description))
            while rows := cursor.fetchmany(200_000):
                begin = time.process_time()
                target.execute("BEGIN")
                target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
                target.execute("COMMIT")
                took += time.process_time() - begin
                count += len(rows)
    return count, took


def main() -> None:
    """Export the report named on the command line and print what it took."""
    source = Path(sys.argv[1])
    with open_report(source) as report:
        begin = time.process_time()
        catalog.find("exporters.formats", "nsys_sqlite").load().write(report, source.with_suffix(".sqlite"))
        cpu = time.process_time() - begin
    print(json.dumps({"cpu": cpu, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
