"""One table of a report as one Parquet file, with all parts and hosts on one clock.

## What maps to what
- `-t parquet:table=kernels`: the rows of that table (default: `nvtx_ranges`) in the order of the
  report, with its columns and types. The metadata of the fields holds their meaning. Times of
  several hosts are on one clock.
- `--filter-time`, `--filter-nvtx` and `--window` select rows.

## What is lost
The other tables. A report itself is a folder of Parquet files, one per part and table, which needs
no export.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.exporters.whole_tables import pieces, schema_of

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".parquet"
LOSES: tuple[Loss, ...] = ("all tables except one",)


def write(report: Report, out: Path, *, table: str = "nvtx_ranges") -> None:
    """Write a table as a Parquet file.

    Args:
        report: the report.
        out: the file.
        table: name of the table, e.g. `kernels`.
    """
    wanted = schema_of(table, texts=False)
    with pq.ParquetWriter(out, wanted, compression="zstd") as writer:
        for batch in pieces(report, table, wanted):
            writer.write_table(pa.Table.from_batches([batch]))
