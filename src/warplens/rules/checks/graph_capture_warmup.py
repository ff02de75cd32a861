"""The program captures many CUDA graphs at the start, as servers do; this distorts the averages.

## What it looks for
At least three CUDA graphs that a process captured or instantiated in sequence, before it launched
graphs more often than it had created them. From the start of the first capture to the end of the
last, that must take at least 1 % of the time.

## Why it costs time
A server captures a graph for each batch size, and runs the model a few times before each capture.
This happens once. During it the host is busy and the GPU nearly idle, so that shares and gaps over
the whole run look as if the host were too slow for the requests.

## What to do
Leave the start out of your analysis: `--filter-time`, `--delay`, or a capture range around the
requests. If the start itself matters, capture fewer sizes (vLLM: `cudagraph_capture_sizes`; SGLang:
`--cuda-graph-bs`, `--cuda-graph-max-bs`), the largest first so that they share a memory pool, or
capture a size at its first request.

## When it does not apply
If the program creates graphs repeatedly for other reasons, and launches each only once: see
`graph_reinstantiation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import gpus, span
from warplens.rules.host_calls import HostCalls, calls, needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
SCOPE = "run"
_CALLS = (
    "regexp_matches(a.name::VARCHAR, "
    "'^(cuda|cu|hip)(StreamBeginCapture|StreamEndCapture|Graph(Instantiate|Launch))')"
)


def check(
    report: Report, selection: Selection, *, rows: int = 50, fewest: int = 3, least: float = 1
) -> list[Finding]:
    """Return one finding, for the process that took longest.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of graphs kept as evidence.
        fewest: minimum number of graphs.
        least: percent of the judged time that it must take.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    graph_calls = calls(report, selection, _CALLS)
    series = [
        first
        for process in np.unique(graph_calls.process).tolist()
        if len(first := _first_series(graph_calls.of(graph_calls.process == process), fewest))
    ]
    if not series:
        return []
    longest = max(series, key=lambda own: int(own.end.max() - own.start[0]))
    begin, end = int(longest.start[0]), int(longest.end.max())
    whole = span(report, selection)
    if (end - begin) * 100 < least * whole:
        return []
    process = int(longest.process[0])
    made = _made(longest)
    number = len(made)
    launched = int(_launches(graph_calls.of(graph_calls.process == process)).sum())
    idle = max(
        (
            int(gpu.idle.within(np.array([begin]), np.array([end]))[0])
            for gpu in devices
            if gpu.process == process
        ),
        default=0,
    )
    columns = made.id, made.start, made.end, made.thread
    evidence = [
        Evidence(
            table="cuda_api",
            id=key,
            start=start,
            end=stop,
            text=f"graph {at} of {number}",
            process=process,
            thread=thread,
        )
        for at, (key, start, stop, thread) in enumerate(
            zip(*(values.tolist() for values in columns), strict=True), 1
        )
    ]
    return [
        Finding(
            rule="graph_capture_warmup",
            subject="CUDA graphs",
            title=f"{counted(number, 'CUDA graph')} were captured at the start, within {duration(end - begin)}",
            cause=f"That is start-up, {percent((end - begin) / whole, 1)} of the time; "
            f"{counted(launched, 'launch')} of graphs followed. Capturing took "
            f"{duration(_capturing(longest, made))} of it; the rest is other work in between, such as "
            "warm-up runs. The GPU had "
            f"nothing to do for {duration(idle)}.",
            fix="Leave the start out of averages and comparisons (--filter-time, --delay, a capture range), or capture fewer batch sizes.",
            evidence=tuple(evidence[:rows]),
            occurrences=number,
            bound=idle or None,
            estimate=0 if idle else None,
            confidence="high",
            severity=None if idle else "low",
        )
    ]


def _first_series(own: HostCalls, fewest: int) -> HostCalls:
    """Return the calls that make graphs before graphs are launched more often than made.

    None if these are few.
    """
    launches = _launches(own)
    makes = np.array(["Instantiate" in name for name in own.name], bool)
    # The first call at which more graphs were launched than made ends the series: make, make,
    # launch, launch, launch ends at the third launch.
    used = np.flatnonzero(np.cumsum(launches) > np.cumsum(makes))
    first = own.of(np.arange(len(own)) < (used[0] if len(used) else len(own)))
    first = first.of(~_launches(first))
    return first if len(_made(first)) >= fewest else first.of(np.zeros(len(first), bool))


def _capturing(series: HostCalls, made: HostCalls) -> int:
    """Return how long graphs were captured and instantiated, ns.

    Each from the begin of the last capture before its end.
    """
    begins = series.start[np.array(["Begin" in name for name in series.name], bool)]
    before = np.searchsorted(begins, made.start, "right") - 1
    begin = np.where(before >= 0, begins[np.maximum(before, 0)], made.start) if len(begins) else made.start
    return Cover(begin, made.end).total


def _made(some: HostCalls) -> HostCalls:
    return some.of(np.array(["Instantiate" in name for name in some.name], bool))


def _launches(some: HostCalls) -> BoolArray:
    return np.array(["Launch" in name for name in some.name], bool)
