"""Fills the tables that come from one SELECT each, and the call chains that they name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.exporters.nsys.database import Writer, places
from warplens.exporters.nsys.selects import IDS, MIGRATIONS, SELECTS, Select
from warplens.exporters.nsys.stacks import Stacks
from warplens.report.streaming import batches

if TYPE_CHECKING:
    from warplens.report import Report

CHAINS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "CUDA_CALLCHAINS",
    "OSRT_API": "OSRT_CALLCHAINS",
    "SYSCALL": "SYSCALL_CALLCHAINS",
}


def rows(report: Report, text: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a SELECT; `q` and `g` in it are processes and threads with nsys' ids."""
    return batches(report, (IDS + text).replace("$origin", str(report.origin)))


def write(writer: Writer, report: Report, stacks: Stacks) -> None:
    """Fill the tables."""
    counts = report.tables
    for table, select in SELECTS.items():
        if counts[select.source]:
            _fill(writer, report, stacks, table=table, select=select)
    if counts["um_events"]:
        _fill(writer, report, stacks, table="CUPTI_ACTIVITY_KIND_MEMCPY", select=MIGRATIONS)


def _fill(writer: Writer, report: Report, stacks: Stacks, table: str, select: Select) -> None:
    for batch in rows(report, select.text):
        values = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name.endswith("@"):
                values[name[:-1]] = writer.strings(column)
            elif name.endswith("#"):
                values[name[:-1]] = places(stacks.keys, column)
            else:
                values[name] = column
        writer.write(table, values)
    if table in CHAINS and stacks.keys.size:
        stacks.write_used(
            writer,
            CHAINS[table],
            rows(report, f"SELECT DISTINCT stack FROM {select.source} WHERE stack IS NOT NULL"),
        )
