"""Refuses reports that have more than a page can show, before it is unpacked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.errors import ReportError
from warplens.model.tables import TABLES

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.store import TableFile

_WHOLE_ROWS = 1 << 20  # of a table that is read whole
_WHOLE_BYTES = 1 << 28
_COUNTERS = 1 << 26
# Read whole, row by row: the entities. Frames and samples of counters are columns of numbers.
_WHOLE = (
    "processes",
    "threads",
    "tasks",
    "devices",
    "contexts",
    "streams",
    "nvtx_counters",
    "diagnostics",
    "capture_windows",
    "targets",
)
_SERIES = ("nvtx_counter_samples", "gpu_metrics", "gpu_memory", "tensor_memory", "frames")


def check_size(report: Report) -> None:
    """Raise ReportError for a report with larger tables than we write, or than a page could show."""
    for table in TABLES:
        rows = size = 0
        for piece in report.stored.pieces(table):
            rows, size = rows + piece.rows, size + _unpacked(piece)
        most = _WHOLE_ROWS if table in _WHOLE else _COUNTERS if table in _SERIES else 1 << 40
        if rows > most:
            raise ReportError(
                f"{report.path} has {rows:,} rows in {table}, more than the timeline can show ({most:,})."
            )
        if table in _WHOLE and size > _WHOLE_BYTES:
            raise ReportError(
                f"{report.path}: the table {table} unpacks to {size >> 20:,} MiB, more than the timeline can show."
            )


def _unpacked(piece: TableFile) -> int:
    """Return the bytes that a file unpacks to, by what it says of itself."""
    try:
        metadata = pq.read_metadata(piece.file)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        raise ReportError(f"cannot read {piece.file}: {error}") from error
    return sum(group.total_byte_size for group in groups)
