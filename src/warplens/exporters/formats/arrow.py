"""One table of a report as an Arrow IPC file (Feather).

For pandas, Polars, R and other tools that map it into memory.

## What maps to what
- `-t arrow:table=kernels`: the rows of that table (default: `nvtx_ranges`) in the order of the
  report, with its columns and types. The metadata of the fields holds their meaning. Times of
  several hosts are on one clock. Dictionaries become texts.
- `--filter-time`, `--filter-nvtx` and `--window` select rows.

## What is lost
The other tables. A report itself is a folder of Parquet files, which needs no export:
`NAME.warplens/tables/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.exporters.whole_tables import pieces, schema_of

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".arrow"
LOSES: tuple[Loss, ...] = ("all tables except one",)


def write(report: Report, out: Path, *, table: str = "nvtx_ranges") -> None:
    """Write a table as an Arrow IPC file.

    Args:
        report: the report.
        out: the file.
        table: name of the table, e.g. `kernels`.
    """
    wanted = schema_of(table)
    with pa.OSFile(str(out), "wb") as sink, pa.ipc.new_file(sink, wanted) as writer:
        for batch in pieces(report, table, wanted):
            writer.write_batch(batch)
