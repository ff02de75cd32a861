"""Finishing a spool in a process of its own, and what writing its tables alone costs."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from warpline.model.tables import TABLES
from warpline.report.build import Timings
from warpline.report.finish import finish
from warpline.report.writer import open_parquet


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
    finish(folder / "spool", folder / "report.warpline", timings=timings)
    wall = time.perf_counter() - begin
    cpu = time.process_time() - before
    files = [file for table in tables for file in (folder / "report.warpline" / "tables" / table).glob("*.parquet")]
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**vars(timings), "wall": wall, "cpu": cpu, "rss": rss, "bytes": sum(file.stat().st_size for file in files)}
