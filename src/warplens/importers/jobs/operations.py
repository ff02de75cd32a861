"""The operations of all ranks of a training job, as one Parquet file holds them.

The columns are those of the traces that ByteDance published with "Understanding Stragglers in Large
Model Training Using What-if Analysis" (OSDI 2025): one row for each operation of each rank and step.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.arrays import Float64Array, Int64Array
from warplens.errors import ReportError

if TYPE_CHECKING:
    import pyarrow as pa

# Column to the type that it must be convertible to.
COLUMNS = {
    "dp_rank": "int64",
    "stage": "int64",
    "rank": "int64",
    "step": "int64",
    "optype": "string",
    "start_ts": "float64",
    "duration": "float64",
    "seq_id": "int64",
    "mc": "int64",
}


@dataclass(frozen=True)
class TrainingOperations:
    """One row for each operation, in order of step, rank and start.

    `kind`: index into `kinds`. `start` and `duration` are seconds; a step's times begin near 0.
    `sequence` counts the operations of a kind within a step and rank.
    """

    kinds: tuple[str, ...]
    kind: Int64Array
    dp_rank: Int64Array
    stage: Int64Array
    rank: Int64Array
    step: Int64Array
    start: Float64Array
    duration: Float64Array
    sequence: Int64Array

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def end(self) -> Float64Array:
        """End of each operation, in seconds."""
        return self.start + self.duration

    def of_step(self, step: int) -> slice:
        """Return the rows of a step."""
        return slice(*np.searchsorted(self.step, [step, step + 1]).tolist())


def is_compute(kind: str) -> bool:
    """True if an operation of this kind runs on the compute stream of its rank."""
    return kind.endswith("-compute") or kind in ("gc", "optimizer")


def is_operations(path: Path) -> bool:
    """True if `path` is a Parquet file with these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        return False
    try:
        return set(COLUMNS) <= set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        return False


def read(path: Path) -> TrainingOperations:
    """Read the operations of a job.

    ReportError if a column is missing, has another type or nulls, where a number makes no sense,
    or where the job has interleaved stages.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(COLUMNS))
    except (pa.ArrowException, OSError) as error:
        raise ReportError(f"{path}: not a Parquet file of operations: {error}") from error
    if not table.num_rows:
        raise ReportError(f"{path}: the file has no operation")
    columns = {name: _column(path, table, name) for name in COLUMNS if name != "optype"}
    if not all(np.isfinite(columns[name]).all() for name in ("start_ts", "duration")):
        raise ReportError(f"{path}: start_ts or duration is not finite")
    if (columns["duration"] < 0).any():
        raise ReportError(f"{path}: an operation has a negative duration")
    if columns["mc"].max() > 0:
        raise ReportError(
            f"{path}: the job has several model chunks per stage (mc > 0); interleaved stages are not "
            "supported"
        )
    kinds = table.column("optype").cast(pa.string()).combine_chunks().dictionary_encode()
    if kinds.null_count:
        raise ReportError(f"{path}: the column optype has nulls")
    kind = kinds.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort((columns["start_ts"], columns["rank"], columns["step"]))
    return TrainingOperations(
        tuple(kinds.dictionary.to_pylist()),
        kind[order],
        dp_rank=columns["dp_rank"][order],
        stage=columns["stage"][order],
        rank=columns["rank"][order],
        step=columns["step"][order],
        start=columns["start_ts"][order],
        duration=columns["duration"][order],
        sequence=columns["seq_id"][order],
    )


def _column(path: Path, table: pa.Table, name: str) -> Any:
    import pyarrow as pa

    column = table.column(name)
    if column.null_count:
        raise ReportError(f"{path}: the column {name} has nulls")
    try:
        return column.cast(COLUMNS[name]).to_numpy()
    except pa.ArrowException as error:
        raise ReportError(f"{path}: the column {name} has the type {column.type}: {error}") from error
