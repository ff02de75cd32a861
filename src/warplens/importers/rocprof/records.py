"""One process of a rocprofv3 recording: its records by kind, in the columns of rocprofv3's CSV files."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

# The columns that each kind is read with; a file of another version may lack those with a default.
TIMES = ("Start_Timestamp", "End_Timestamp")
NUMBERS: dict[str, tuple[str, ...]] = {
    "kernels": (
        *TIMES,
        "Queue_Id",
        "Stream_Id",
        "Thread_Id",
        "Correlation_Id",
        "Group_Segment_Size",
        "LDS_Block_Size",
        "VGPR_Count",
        *(f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ"),
    ),
    "copies": (*TIMES, "Stream_Id", "Correlation_Id", "Bytes"),
    "calls": (*TIMES, "Process_Id", "Thread_Id", "Correlation_Id"),
    "markers": (*TIMES, "Process_Id", "Thread_Id", "Correlation_Id"),
    "allocations": (*TIMES, "Allocation_Size", "Correlation_Id"),
}
TEXTS: dict[str, tuple[str, ...]] = {
    "kernels": ("Agent_Id", "Kernel_Name"),
    "copies": ("Direction", "Source_Agent_Id", "Destination_Agent_Id"),
    "calls": ("Domain", "Function"),
    "markers": ("Domain", "Function", "Operation"),
    "allocations": ("Operation", "Agent_Id", "Address"),
}


@dataclass(frozen=True)
class RocmAgent:
    """A GPU as rocprofv3 lists it. `labels`: what its records may call it."""

    labels: tuple[str, ...]
    name: str
    units: int | None = None
    memory: int | None = None


@dataclass
class RocmProcess:
    """Records of one process. Tables have the columns of `NUMBERS` (int64) and `TEXTS` (string).

    `begin`, `end`: ns, where the file says them. `dropped`: records without a place in a report, by kind, with their number.
    """

    pid: int = 0
    name: str = ""
    begin: int | None = None
    end: int | None = None
    rank: int | None = None
    tables: dict[str, pa.Table] = field(default_factory=dict)
    gpus: list[RocmAgent] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, rows: pa.Table) -> None:
        """Append rows of a kind, whose columns are those of `NUMBERS` and `TEXTS`."""
        before = self.tables.get(kind)
        self.tables[kind] = rows if before is None else pa.concat_tables([before, rows])

    def drop(self, kind: str, count: int) -> None:
        """Count records that a report has no place for."""
        if count:
            self.dropped[kind] = self.dropped.get(kind, 0) + count


def normalised(kind: str, columns: dict[str, pa.ChunkedArray | pa.Array | list[int] | list[str]]) -> pa.Table:
    """Return a table with all columns of a kind: numbers that the file lacks are 0, texts empty."""
    length = len(next(iter(columns.values()))) if columns else 0
    made = {}
    for names, type_, nothing in ((NUMBERS[kind], pa.int64(), 0), (TEXTS[kind], pa.string(), "")):
        for name in names:
            if name in columns:
                values = columns[name]
                array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, type_)
                made[name] = array.fill_null(nothing) if array.null_count else array
            else:
                made[name] = pa.repeat(pa.scalar(nothing, type_), length)
    return pa.table(made)
