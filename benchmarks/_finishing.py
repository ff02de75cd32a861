"""Finishes a spool in a separate process, and measures the cost of writing its tables alone."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from harness import Row
from warplens.convert.finish import finish
from warplens.convert.timings import Timings
from warplens.model.tables import TABLES
from warplens.storage.writer import open_parquet

BUDGET = 1e6  # records per second and core
BUDGET_RSS = 1 << 30


def finish_sizes(
    kind: str, script: Path, make_spool: Callable[[Path, int], None], tables: Sequence[str], *, quick: bool
) -> list[Row]:
    """Finish spools of 10^6 records, and of 10^7 unless `quick`, each by `script FOLDER` in a separate process."""
    rows = []
    for size in (1_000_000,) if quick else (1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
            make_spool(Path(folder) / "spool", size)
            output = subprocess.run(
                [sys.executable, script, folder], check=True, capture_output=True, text=True
            ).stdout
            found = json.loads(output.splitlines()[-1])
            floor = sum(write_alone(Path(folder) / "report.warplens", table) for table in tables)
        label = f"finish {size:.0e} {kind} records".replace("e+0", "e")
        rows += [
            Row(
                f"{label}: per second and core",
                size / found["cpu"],
                "records/s",
                budget=BUDGET,
                budget_on="at least",
            ),
            Row(
                f"{label}: CPU per record",
                found["cpu"] / size * 1e9,
                "ns",
                "pyarrow writes the same tables",
                floor / size * 1e9,
            ),
            Row(f"{label}: wall", found["wall"], "s"),
            Row(
                f"{label}: peak memory",
                found["rss"] / 2**20,
                "MiB",
                budget=BUDGET_RSS / 2**20,
                budget_on="value",
            ),
            Row(f"{label}: Parquet", found["bytes"] / size, "B/record"),
        ]
    return rows


def write_alone(report: Path, table: str) -> float:
    """Return the CPU seconds that pyarrow needs to write a finished table again, row group by row group."""
    words = [column.name for column in TABLES[table].columns if column.type == "dict"]
    source = pq.ParquetFile(next((report / "tables" / table).glob("*.parquet")), read_dictionary=words)
    spent = 0.0
    writer = open_parquet(report / "again.parquet", table)
    for number in range(source.num_row_groups):
        rows = source.read_row_group(number, use_threads=False).cast(writer.schema)
        begin = time.process_time()
        writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        spent += time.process_time() - begin
    writer.close()
    return spent


def measure(folder: Path, tables: Iterable[str]) -> dict[str, float]:
    """Finish the spool in `folder`; return seconds of each stage, CPU seconds, peak memory, and the bytes that `tables` take."""
    timings = Timings()
    before = time.process_time()
    begin = time.perf_counter()
    finish(folder / "spool", folder / "report.warplens", timings=timings)
    wall = time.perf_counter() - begin
    cpu = time.process_time() - before
    files = [
        file for table in tables for file in (folder / "report.warplens" / "tables" / table).glob("*.parquet")
    ]
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        **vars(timings),
        "wall": wall,
        "cpu": cpu,
        "rss": rss,
        "bytes": sum(file.stat().st_size for file in files),
    }
