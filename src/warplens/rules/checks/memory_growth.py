"""The memory of a process grew and did not shrink again.

## What it looks for
The resident memory of a process, as the launcher reads it. Its minimum over the rest of the run
must grow by at least 64 MiB and by a tenth of the process's largest size. It must also grow in the
second half and in the last quarter of the readings, not by one jump. Data that is loaded at the
start and kept does not count. The end of a process, which releases everything, does not count.

## Why it costs time
It costs none until memory is full: then the system swaps or kills the process. Memory that grows
with each request or step reaches that point.

## What to do
Check what the named function or range keeps: lists and dictionaries that only grow, caches without
a limit, tensors that hold a gradient graph, closures. `memray` records every allocation: the
finding contains the command.

## When it does not apply
If the program must keep all of its results until it ends. If the allocator keeps freed memory for
reuse.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.own_code import OwnCode
from warplens.analysis.cpu.thread_time import ThreadTime
from warplens.analysis.intervals import Cover
from warplens.analysis.memory import before_the_end, size_over_time, sizes
from warplens.arrays import Float64Array, Int64Array
from warplens.errors import MissingData
from warplens.model.words import duration, percent, size
from warplens.rules.base import Evidence, Finding, Severity
from warplens.rules.hosts import edges, rows
from warplens.rules.python_time import called, python_time

if TYPE_CHECKING:
    from warplens.report import Report, Selection

SCOPE = "run"  # growth at start-up is recognized by its shape
LINK = "https://bloomberg.github.io/memray/memory.html"
_READINGS = 5  # of a process: fewer say nothing about growth
_LATE = ((0.5, 0.25), (0.75, 0.08))  # behind which share of the time which share of the growth must be
_JUMP = 0.5  # share of the growth in one step, from which on something was loaded or allocated once
_RAN = 0.5  # share of a sample's time in which its thread ran, to count
_MOST_OF_IT = 0.5  # share of the growth from which on a range is named
_HIGH, _MEDIUM = 0.10, 0.02  # share of the machine's memory


@dataclass(frozen=True)
class _Growth:
    """How a process grew: from `first` to `last` bytes, in the time from `begin` to `end`.

    The steps that did not come back.
    """

    begin: int
    end: int
    first: float
    last: float
    start: Int64Array
    steps: Float64Array

    @property
    def bytes(self) -> int:
        """By how much."""
        return round(self.last - self.first)


def check(report: Report, selection: Selection, *, least: float = 64, share: float = 10) -> list[Finding]:
    """Return a finding for each process that grew.

    Args:
        report: the report.
        selection: the part to use.
        least: minimum growth, MiB.
        share: minimum growth, percent of the largest size.
    """
    readings = sizes(report) if report.tables["host_metrics"] else None
    if readings is None or not readings.num_rows:
        raise MissingData(f"does not contain memory of processes over time{selection.place(report)}.")
    begin, end = edges(report, selection)
    memory = max((row["memory"] or 0 for row in report.table("targets").to_pylist()), default=0)
    findings = []
    for process in report.table("processes").to_pylist():
        time, value = size_over_time(readings, process["process"])
        inside = (time >= begin) & (time <= end)
        growth = _growth(time[inside], value[inside])
        if growth is None or growth.bytes < max(least * (1 << 20), share / 100 * value[inside].max()):
            continue
        findings.append((growth.bytes, _finding(report, selection, process, growth=growth, memory=memory)))
    return [finding for _, finding in sorted(findings, key=lambda item: -item[0])]


def _growth(time: Int64Array, value: Float64Array) -> _Growth | None:
    """Return how much of the growth never came back; None where it was no steady one.

    The level at a time is the least that was read from then on: [3, 5, 4, 9] has the levels [3, 4, 4, 9].
    """
    kept = before_the_end(value)
    if kept < _READINGS:
        return None
    # of the last reading nobody knows whether it came back
    time, level = time[: kept - 1], np.minimum.accumulate(value[:kept][::-1])[::-1][:-1]
    steps = np.diff(level)
    passed = (time[1:] - time[0]) / max(int(time[-1] - time[0]), 1)
    if steps.sum() <= 0 or steps.max() > _JUMP * steps.sum():
        return None
    if any(steps[passed > behind].sum() < share * steps.sum() for behind, share in _LATE):
        return None
    return _Growth(
        int(time[0]), int(time[-1]), first=float(level[0]), last=float(level[-1]), start=time, steps=steps
    )


def _finding(
    report: Report, selection: Selection, process: dict[str, Any], growth: _Growth, memory: int
) -> Finding:
    name = process["name"] or f"process {process['pid']}"
    function, in_function = _function(report, selection, process["process"], growth=growth)
    span, in_span = _range(report, selection, process["process"], growth=growth)
    named = ((f"the range {span}" if span else "", in_span), (function, in_function))
    during = " and ".join(f"{percent(share)} of it during {what}" for what, share in named if what)
    part = growth.bytes / memory if memory else 0
    severity: Severity = "high" if part >= _HIGH else "medium" if part >= _MEDIUM else "low"
    seconds = (growth.end - growth.begin) / 1e9
    cause = f"It went from {size(round(growth.first))} to {size(round(growth.last))} in {duration(growth.end - growth.begin)}, "
    cause += f"{size(round(growth.bytes / max(seconds, 1e-9)))} a second"
    where = max(named, key=lambda item: item[1])[0]
    order = np.argsort(-growth.steps, kind="stable")[:50]
    evidence = tuple(
        Evidence(
            table="host_metrics",
            id=None,
            start=int(growth.start[row]),
            end=int(growth.start[row + 1]),
            text=f"+{size(round(growth.steps[row]))}",
            process=process["process"],
        )
        for row in sorted(
            order[growth.steps[order] > 0].tolist(), key=lambda row: growth.start[row] - growth.start[row + 1]
        )
    )
    return Finding(
        rule="memory_growth",
        subject=f"the memory of {name}",
        title=f"{name} grew by {size(growth.bytes)} and did not come back"
        + (f", most of it in {where}" if where else ""),
        cause=f"{cause}{', ' + during if during else ''}.",
        fix=f"This command names the allocations that are not freed: {_memray(process)}",
        evidence=evidence,
        occurrences=len(evidence),
        confidence="medium",
        severity=severity,
    )


def _function(report: Report, selection: Selection, process: int, growth: _Growth) -> tuple[str, float]:
    """Return the function during which most of the growth was, and its share.

    Empty where no Python was sampled.
    """
    try:
        code, threads = python_time(report, selection)
    except MissingData:
        return "", 0.0
    sums: dict[str, float] = {}
    for time in threads:
        if time.process == process:
            _add(sums, code, time, growth=growth)
    if not sums:
        return "", 0.0
    name = max(sums, key=lambda name: sums[name])
    return name, sums[name] / max(sum(sums.values()), 1e-9)


def _add(sums: dict[str, float], code: OwnCode, time: ThreadTime, growth: _Growth) -> None:
    """Add the growth of each step to the functions that ran in it, by how long they did."""
    step = np.searchsorted(growth.start, (time.since + time.until) // 2, "right") - 1
    # a tick that saw a thread stand still tells nothing of what it had done before
    inside = (step >= 0) & (step < len(growth.steps)) & (time.ran > _RAN * (time.until - time.since))
    ran = time.ran[inside]
    # A step of 10 MiB in which f ran for 3 ms and g for 1 ms gives 7.5 MiB to f and 2.5 MiB to g.
    whole = np.bincount(step[inside], ran, len(growth.steps))
    part = ran / np.maximum(whole[step[inside]], 1) * growth.steps[step[inside]]
    positions, which = np.unique(time.stack[inside], return_inverse=True)
    for position, grown in zip(
        positions.tolist(), np.bincount(which, part, len(positions)).tolist(), strict=True
    ):
        at = int(code.own[position]) if code.own[position] >= 0 else int(code.python[position])
        if at >= 0 and grown > 0:
            frame = code.frames.frame(at)
            name = "imports" if code.importing[position] else called(frame.function, frame.file or "")
            sums[name] = sums.get(name, 0.0) + grown


def _range(report: Report, selection: Selection, process: int, growth: _Growth) -> tuple[str, float]:
    """Return the shortest NVTX ranges during most of the growth, and their share.

    By name; empty where there are none.
    """
    if not report.tables["nvtx_ranges"]:
        return "", 0.0
    ranges = rows(
        report,
        selection,
        "message",
        table="nvtx_ranges",
        where=f"process = {process} AND message IS NOT NULL",
    )
    edges_of = np.append(growth.start[: len(growth.steps)], growth.end)
    length, whole = np.maximum(np.diff(edges_of), 1), max(float(growth.steps.sum()), 1e-9)
    messages = ranges["message"].to_pylist()
    large: list[tuple[int, str, float]] = []
    for name in set(messages):
        mine = ranges.filter(pa.array([message == name for message in messages]))
        cover = Cover(mine["start"].to_numpy(), mine["end"].to_numpy())
        share = float((cover.within(edges_of[:-1], edges_of[1:]) / length * growth.steps).sum()) / whole
        if share >= _MOST_OF_IT:
            large.append((cover.total, str(name), share))
    return min(large)[1:] if large else ("", 0.0)


def _memray(process: dict[str, Any]) -> str:
    """Return the command that records the allocations of the process's program."""
    words = shlex.split(process["command"] or "")
    program = words[1:] if words and "python" in words[0].rpartition("/")[2] else words
    shown = shlex.join(program) or "PROGRAM"
    return f"python -m memray run -o growth.bin {shown} && python -m memray flamegraph --leaks growth.bin"
