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
from warplens.report.columns import coded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from warplens.analysis.cpu.own_code import OwnCode
    from warplens.report.report import Report

_MOST = 32  # phases of a process, the longest ones
_LEAST = 0.01  # share of the process's time below which a phase has no line
WHOLE = "(whole process)"


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


def memory_phases(report: Report) -> list[PhaseMemory]:
    """Return the phases of each process whose memory was read, the whole process first, then those that grew most."""
    readings = sizes(report) if report.tables["host_metrics"] else None
    if readings is None or not readings.num_rows:
        return []
    ranges = report.table("nvtx_ranges", ["process", "message", "start", "end"])
    rows = []
    for process in report.table("processes", ["process", "start", "end", "max_rss"]).to_pylist():
        time, value = size_over_time(readings, process["process"])
        if not len(time):
            continue
        kept = before_the_end(value)
        time, value = time[:kept], value[:kept]
        whole = Cover([process["start"]], [process["end"]])
        first = _memory(process["process"], WHOLE, whole, time=time, value=value)
        peak = max(first.peak or 0, process["max_rss"] or 0)
        rows.append(replace(first, peak=peak))
        phases = [*_ranges(ranges, process["process"])] or [*_functions(report, process["process"])]
        phases.sort(key=lambda phase: -phase[1].total)
        mine = [
            _memory(process["process"], name, cover, time=time, value=value)
            for name, cover in phases[:_MOST]
            if cover.total >= _LEAST * whole.total
        ]
        rows += sorted(mine, key=lambda phase: (-phase.grew, -(phase.peak or 0), phase.phase))
    return rows


def _memory(process: int, name: str, cover: Cover, time: Int64Array, value: Float64Array) -> PhaseMemory:
    """A step of memory between two readings belongs to a phase by the share of the time between them that the phase has."""
    inside = cover.within(time, time + 1) > 0
    share = cover.within(time[:-1], time[1:]) / np.maximum(np.diff(time), 1)
    grew = float((share * np.diff(value)).sum())
    peak = round(value[inside].max()) if inside.any() else None
    return PhaseMemory(process, name, cover.total, peak=peak, grew=round(grew))


def _ranges(rows: pa.Table, process: int) -> Iterator[tuple[str, Cover]]:
    """Yield the NVTX ranges (`rows`) of a process by name."""
    if not rows.num_rows:
        return
    names, code = coded(rows["message"])
    mine = (np.asarray(rows["process"].to_numpy(), np.int64) == process) & (code >= 0)
    code, start, end = code[mine], rows["start"].to_numpy()[mine], rows["end"].to_numpy()[mine]
    order = np.argsort(code, kind="stable")
    numbers, first = np.unique(code[order], return_index=True)
    for number, part in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
        yield names[number], Cover(start[part], end[part])


def _functions(report: Report, process: int) -> Iterator[tuple[str, Cover]]:
    """Yield what the main thread ran: functions of the program's own code, imports, else packages."""
    time = next((one for one in thread_times(report) if one.main and one.process == process), None)
    if time is None:
        return
    code = own_code(report)
    positions, which = np.unique(time.stack, return_inverse=True)
    names = np.array([_called(code, position) for position in positions.tolist()], object)[which]
    for name in dict.fromkeys(names.tolist()):
        mine = names == name
        yield name, Cover(time.since[mine], np.maximum(time.until[mine], time.since[mine]))


def _called(code: OwnCode, position: int) -> str:
    if code.importing[position]:
        return "imports"
    at, own = int(code.python[position]), int(code.own[position])
    if own >= 0:
        frame = code.frames.frame(own)
        return f"{frame.function} ({(frame.file or '').rpartition('/')[2]})"
    return package_of(code.frames.frame(at).file or "") if at >= 0 else "?"
