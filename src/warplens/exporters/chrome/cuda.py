"""CUDA and the CPU side as Chrome trace events.

Rows beside their threads, and the counters of GPUs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from warplens.errors import ReportError
from warplens.exporters.chrome.json_text import microseconds, named
from warplens.exporters.chrome.rows import row_events
from warplens.exporters.cpu_events import CpuTracks, cpu_events
from warplens.exporters.cuda_events import events
from warplens.exporters.cuda_tracks import CudaTracks
from warplens.exporters.gpu_counters import GpuCounters
from warplens.exporters.inside_kernels import InsideTracks, inside_events
from warplens.exporters.tracks import Tracks

if TYPE_CHECKING:
    from warplens.report import Report

_AT_ONCE = 1 << 16  # as Python objects
_METRICS = (1 << 25) + (1 << 24)  # ids of processes, above those that there are


def cuda_and_cpu(report: Report, tracks: Tracks) -> Iterator[list[str]]:
    """Yield CUDA's events, the CPU side of threads, and the names of both rows."""
    gpu, cpu = CudaTracks.of(report, tracks), CpuTracks.of(report, tracks)
    inside = InsideTracks.of(report, tracks, gpu)
    within = (
        replace(piece, row=piece.row + len(gpu.rows))
        for piece in inside_events(report, inside, most=_AT_ONCE)
    )
    rows = [*gpu.rows, *inside.rows]
    yield from row_events(
        tracks, rows, chain(events(report, gpu, most=_AT_ONCE), within), origin=report.origin, first=0
    )
    yield from row_events(
        tracks, cpu.rows, cpu_events(report, cpu, most=_AT_ONCE), origin=report.origin, first=len(rows)
    )
    yield from _counters(report, tracks)


def _counters(report: Report, tracks: Tracks) -> Iterator[list[str]]:
    counters = GpuCounters.of(report)
    pids = {process.key: process.pid for process in tracks.processes}
    devices = {
        name: _METRICS + index
        for index, name in enumerate(dict.fromkeys(c.gpu for c in counters.all if c.process is None))
    }
    yield [named("process_name", pid, None, name=name) for name, pid in devices.items()]
    heads = []
    for counter in counters.all:
        if counter.process is not None and counter.process not in pids:
            raise ReportError(
                f"{report.path} is broken: its GPU memory is of the process {counter.process}, which it lacks"
            )
        pid = devices[counter.gpu] if counter.process is None else pids[counter.process]
        name = f"{counter.name} ({counter.unit})" if counter.unit else counter.name
        heads.append(f'{{"ph":"C","name":{json.dumps(name)},"cat":"cuda","pid":{pid},"tid":0')
    for piece in counters.samples(most=_AT_ONCE):
        columns = (piece.counter, piece.time - report.origin, piece.whole, piece.real, piece.is_float)
        yield [
            f'{heads[index]},"ts":{microseconds(time)},"args":{{"value":{_number(real) if is_float else whole}}}}}'
            for index, time, whole, real, is_float in zip(
                *(column.tolist() for column in columns), strict=True
            )
        ]


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{value}"'
