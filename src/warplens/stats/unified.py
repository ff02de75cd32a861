"""SQL that the summaries of unified memory share: bytes moved, faults, and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.gpu.ops import during

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_KINDS = ("HtoD", "DtoH", "DtoD", "CPU page fault", "GPU page fault")


def _size(kind: str) -> str:
    return f"coalesce(sum(bytes) FILTER (kind = '{kind}'), 0) / 1e6"


def _faults(kind: str) -> str:
    return f"coalesce(sum(coalesce(faults, 1)) FILTER (kind = '{kind}'), 0)::BIGINT"


# Columns of a grouped SELECT; sizes in 10^6 bytes.
SIZES = f"{_size('HtoD')} AS to_device, {_size('DtoH')} AS to_host"
FAULTS = f"{_faults('CPU page fault')} AS cpu_faults, {_faults('GPU page fault')} AS gpu_faults"
_MIGRATED = "FILTER (kind IN ('HtoD', 'DtoH', 'DtoD'))"
MOVED = f"(sum(bytes) {_MIGRATED} / 1e6)"
TAKEN = f'(sum("end" - "start") {_MIGRATED})'  # ns


def unified(report: Report, selection: Selection) -> str:
    """Return the SQL relation (in parentheses) of migrations and page faults that overlap the selection."""
    return f"(SELECT * FROM um_events WHERE kind IN {_KINDS} AND {during(report, selection)})"


def address(column: pa.ChunkedArray) -> pa.Array:
    """Write addresses as 0x… with 16 digits."""
    return pa.array(
        [None if value is None else f"0x{value:016x}" for value in column.to_pylist()], pa.string()
    )
