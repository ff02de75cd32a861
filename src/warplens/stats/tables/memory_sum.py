"""Memory by Phase.

## What it shows
Resident memory of each process, in total and by phase. Phases are the NVTX ranges by name. Without
ranges, they are what the main thread ran in Python: functions of the program's own code, imports,
or else packages.

## Columns
- Max (MiB): the largest reading in the phase; for the whole process also the peak that the system
  reported at its end. Empty if the phase was too short for a reading.
- Grew (MiB): growth of the memory during the phase; negative if it shrank.
- Time (ns): length of the phase.
- Process, PID: the process. Phase: its name.

Processes keep their order. Each begins with a row for the whole process; the phases follow, largest
growth first.

## How it is computed
From `host_metrics`: the launcher reads the memory of each process four times a second. A change
between two readings is divided among the phases between them, by their share of that time. A phase
is the union of all ranges, or samples, of its name.

## Traps
- Growth in a nested range counts in the outer range, too.
- Memory that a process releases at its end does not count.
- Memory that is allocated and freed between two readings appears only in the peak of the process.
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
    """Return the phases of each process; raises MissingData if no memory was read."""
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
