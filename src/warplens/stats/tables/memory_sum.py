"""Memory by Phase.

## What it shows
The resident memory of each process, in all and in each phase: its NVTX ranges by name, or, without them, what its main thread ran in
Python: functions of the program's own code, imports, else packages.

## Columns
- Max (MiB): the largest reading in the phase; of the whole process also the peak that the system noted at its end. Empty where the
  phase was too short for a reading.
- Grew (MiB): by how much memory grew during the phase; negative where it shrank.
- Time (ns): length of the phase.
- Process, PID: which process. Phase: its name.

Processes in their order, the whole first, then the phases that grew most.

## How it is computed
From `host_metrics`: the launcher reads the memory of each process four times a second. A step between two readings is divided among the
phases that lie between them, by their share of that time. A phase is the union of all ranges, or samples, of its name.

## Traps
- Ranges in ranges both have what grew during the inner one.
- Memory that a process gives back at its end does not count.
- What grows and comes back between two readings is in the peak of the process alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.memory_phases import memory_phases
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_MIB = 1 << 20


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the phases of each process; MissingData where no memory was read."""
    phases = memory_phases(report)
    if not phases:
        raise MissingData(f"does not contain memory of processes over time{selection.place(report)}.")
    rows = {row["process"]: row for row in report.table("processes", ["process", "pid", "name"]).to_pylist()}
    return pa.table(
        {
            "Max (MiB)": pa.array(
                [None if one.peak is None else one.peak / _MIB for one in phases], pa.float64()
            ),
            "Grew (MiB)": [one.grew / _MIB for one in phases],
            "Time (ns)": pa.array([one.time for one in phases], pa.int64()),
            "Process": pa.array([rows[one.process]["name"] for one in phases], pa.string()),
            "PID": pa.array([rows[one.process]["pid"] for one in phases], pa.int64()),
            "Phase": [one.phase for one in phases],
        }
    )
