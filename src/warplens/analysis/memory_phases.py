"""Memory of each process by phase: its NVTX ranges, else what its main thread ran in Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.cpu.own_code import package_of
from warplens.analysis.cpu.thread_time import own_code, thread_times
from warplens.analysis.intervals import Cover
from warplens.analysis.memory import before_the_end, size_over_time, sizes
from warplens.arrays import Float64Array, Int64Array
from warplens.report.columns import coded, integers
from warplens.report.row_groups import stream

if TYPE_CHECKING:
    from warplens.analysis.cpu.own_code import OwnCode
    from warplens.report.report import Report

_MOST = 32  # phases of a process, the longest ones
_LEAST = 0.01  # share of the process's time below which a phase has no line
WHOLE = "(whole process)"
# The union of the ranges of a name is no longer than their sum.
_LONG = f"""
    SELECT process, message::VARCHAR AS name FROM nvtx_ranges AS ranges JOIN processes USING (process)
    WHERE message IS NOT NULL GROUP BY ALL
    HAVING sum(ranges."end" - ranges."start") >= {_LEAST} * any_value(processes."end" - processes."start")
"""


@dataclass(frozen=True)
class PhaseMemory:
    """Resident memory of the process with key `process` during a phase.

    `time`: its length, ns; `peak`: the largest reading in it, None where it was too short for one; `grew`: bytes by which
    memory grew during it, negative where it shrank.
    """

    process: int
    phase: str
    time: int
    peak: int | None
    grew: int


class _Phase:
    """The time of one phase, by the readings of memory that it lies between."""

    def __init__(self, time: Int64Array) -> None:
        """Begin an empty phase; `time`: when memory was read."""
        self.total = 0
        self._time = time
        self._between = np.zeros(len(time) - 1, np.int64)
        self._inside = np.zeros(len(time), bool)
        self._reach = np.iinfo(np.int64).min

    def add(self, start: Int64Array, end: Int64Array) -> None:
        """Add times; none begins before those of the last call."""
        # Of those, all from their last end on is free: [0, 9) and [1, 2) leave [9, …) to what begins at 3.
        cover = Cover(np.maximum(start, self._reach), np.maximum(end, self._reach))
        if not cover.total:
            return
        self.total += cover.total
        self._reach = int(cover.end[-1])
        low = max(int(np.searchsorted(self._time, cover.start[0], "right")) - 1, 0)
        high = int(np.searchsorted(self._time, self._reach)) + 1
        near = self._time[low:high]
        self._between[low : high - 1] += cover.within(near[:-1], near[1:])
        self._inside[low:high] |= cover.within(near, near + 1) > 0

    def memory(self, process: int, name: str, value: Float64Array) -> PhaseMemory:
        """A step of memory between two readings belongs to a phase by the share of the time between them that the phase has."""
        share = self._between / np.maximum(np.diff(self._time), 1)
        peak = round(value[self._inside].max()) if self._inside.any() else None
        grew = round(float((share * np.diff(value)).sum()))
        return PhaseMemory(process, name, self.total, peak=peak, grew=grew)


def memory_phases(report: Report) -> list[PhaseMemory]:
    """Return the phases of each process whose memory was read, the whole process first, then those that grew most."""
    readings = sizes(report) if report.tables["host_metrics"] else None
    if readings is None or not readings.num_rows:
        return []
    processes = report.table("processes", ["process", "start", "end", "max_rss"]).to_pylist()
    read = {}
    for key in (process["process"] for process in processes):
        time, value = size_over_time(readings, key)
        if kept := before_the_end(value):
            read[key] = (time[:kept], value[:kept])
    ranges = _ranges(report, {key: time for key, (time, _) in read.items()})
    rows = []
    for process in processes:
        key = process["process"]
        if key not in read:
            continue
        time, value = read[key]
        whole = _Phase(time)
        whole.add(np.array([process["start"]]), np.array([process["end"]]))
        first = whole.memory(key, WHOLE, value)
        rows.append(replace(first, peak=max(first.peak or 0, process["max_rss"] or 0)))
        phases = ranges.get(key) or _functions(report, key, time)
        longest = sorted(phases.items(), key=lambda phase: -phase[1].total)[:_MOST]
        mine = [
            phase.memory(key, name, value) for name, phase in longest if phase.total >= _LEAST * whole.total
        ]
        rows += sorted(mine, key=lambda phase: (-phase.grew, -(phase.peak or 0), phase.phase))
    return rows


def _ranges(report: Report, times: dict[int, Int64Array]) -> dict[int, dict[str, _Phase]]:
    """Return the NVTX ranges of each process by name, without names that are too short for a line.

    Reads the table by row groups: its rows may be larger than memory.
    """
    phases: dict[int, dict[str, _Phase]] = {}
    if not report.tables["nvtx_ranges"]:
        return phases
    for row in report.sql(_LONG).to_pylist():
        if row["process"] in times:
            phases.setdefault(row["process"], {})[row["name"]] = _Phase(times[row["process"]])
    columns = ["process", "message", "start", "end"]
    for rows in stream(report, "nvtx_ranges", columns) if phases else ():
        names, code = coded(rows["message"])
        numbers = {name: number for number, name in enumerate(names)}
        process, start, end = (integers(rows, name) for name in ("process", "start", "end"))
        for key in phases.keys() & np.unique(process).tolist():
            for name in phases[key].keys() & numbers.keys():
                mine = (process == key) & (code == numbers[name])
                phases[key][name].add(start[mine], end[mine])
    return phases


def _functions(report: Report, process: int, time: Int64Array) -> dict[str, _Phase]:
    """Return what the main thread ran: functions of the program's own code, imports, else packages."""
    phases: dict[str, _Phase] = {}
    main = next((one for one in thread_times(report) if one.main and one.process == process), None)
    if main is None:
        return phases
    code = own_code(report)
    positions, which = np.unique(main.stack, return_inverse=True)
    names = np.array([_called(code, position) for position in positions.tolist()], object)[which]
    for name in dict.fromkeys(names.tolist()):
        mine = names == name
        phases[name] = _Phase(time)
        phases[name].add(main.since[mine], np.maximum(main.until[mine], main.since[mine]))
    return phases


def _called(code: OwnCode, position: int) -> str:
    if code.importing[position]:
        return "imports"
    at, own = int(code.python[position]), int(code.own[position])
    if own >= 0:
        frame = code.frames.frame(own)
        return f"{frame.function} ({(frame.file or '').rpartition('/')[2]})"
    return package_of(code.frames.frame(at).file or "") if at >= 0 else "?"
