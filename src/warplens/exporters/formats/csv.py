"""One table of a report as CSV, for spreadsheets and scripts.

## What maps to what
- `-t csv:table=kernels`: the rows of that table (default: `nvtx_ranges`) in the order of the
  report, after a line with the column names. Times are ns. Bytes (of payloads) are hexadecimal.
- `--filter-time`, `--filter-nvtx` and `--window` select rows. `warplens stats -f csv` writes
  computed tables, `warplens query -f csv` the result of a SELECT.

## What is lost
See LOSES.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

from warplens.exporters.whole_tables import pieces, schema_of

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".csv"
LOSES: tuple[Loss, ...] = ("all tables except one", "column types")


def write(report: Report, out: Path, *, table: str = "nvtx_ranges") -> None:
    """Write a table as CSV.

    Args:
        report: the report.
        out: the file.
        table: name of the table, e.g. `kernels`.
    """
    wanted = schema_of(table)
    written = pa.schema(
        [pa.field(item.name, pa.string()) if pa.types.is_binary(item.type) else item for item in wanted]
    )
    with csv.CSVWriter(str(out), written) as writer:
        for batch in pieces(report, table, wanted):
            columns = [
                _hexadecimal(column) if pa.types.is_binary(column.type) else column
                for column in batch.columns
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=written))


def _hexadecimal(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
