"""pprof's gzip'd protobuf, for `go tool pprof`, Polar Signals, Grafana Pyroscope and Speedscope.

## What maps to what
- A sample: a thread's stack, its number of samples, and the time that they stand for: `cpu`, or
  `wall` if waiting threads are included. Labels: `process` and `thread` (names), `pid` and `tid`.
- A location: a function with the line that ran; for native code also the address in its file.
- A function: its name, file, and first line.
- A mapping: a library or program with its build id, so that pprof can find its symbols.
- Also: start (wall clock) and length of the report, and the interval between samples.

## What is lost
See LOSES. Nothing is rounded.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from warplens.disk.files import output
from warplens.exporters.profiles.pprof_profile import PprofProfile
from warplens.exporters.profiles.stacks import Labels, ProfileThreads, sums, wanted

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report
    from warplens.report.selection import Selection

SUFFIX = ".pb.gz"
LOSES: tuple[Loss, ...] = (
    "times of samples",
    "everything except samples of one kind: `:kind=python` or `:kind=native` selects it, `:wall` adds waiting threads",
    (
        "CPU, GIL and exception state of samples, asyncio tasks, NVTX ranges",
        "samples",
    ),
)


def write(
    report: Report, out: Path, *, kind: str = "auto", wall: bool = False, selection: Selection | None = None
) -> None:
    """Write the samples of the report as a profile of pprof.

    Args:
        report: the report.
        out: the file.
        kind: samples to export: python, native, auto (native ones if there are any), osrt (C
            library calls that have a stack) or tasks (of asyncio).
        wall: include Python samples of waiting threads.
        selection: the part to export.
    """
    which = wanted(report, kind, wall)
    labels, threads = Labels.of(report, lines=True), ProfileThreads(report)
    rows = sums(report, selection, which)
    profile = PprofProfile(labels, which.time)
    stacks = labels.frames.positions(rows.column("stack")).tolist()
    columns = (rows.column(name).to_pylist() for name in ("thread", "count", "weight"))
    total = ticks = 0
    for stack, thread, count, weight in zip(stacks, *columns, strict=True):
        pid, tid = threads.ids(thread)
        about = {"process": threads.process(thread), "thread": threads.name(thread)}
        profile.add(stack, count, weight, about, {"pid": pid, "tid": tid})
        total, ticks = total + weight, ticks + count
    begin, end = report.span
    with output(out) as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        realtime = begin + report.manifests[0].realtime_offset
        packed.writelines(profile.pieces(realtime, end - begin, round(total / ticks) if ticks else 0))
