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
from warplens.model.words import counted, duration, percent, was
from warplens.rules.base import Evidence, Finding
from warplens.rules.captures import FEWEST, first_graphs
from warplens.rules.gpus import gpus, span
from warplens.rules.host_calls import needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
SCOPE = "run"


def check(
    report: Report,
    selection: Selection,
    *,
    rows: int = 50,
    fewest: int = FEWEST,
    least: float = 1,
    alone: float = 20,
) -> list[Finding]:
    """Return one finding, for the process that took longest.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of graphs kept as evidence.
        fewest: graphs that are many.
        least: percent of the judged time that many must take.
        alone: percent of it that fewer must take, in a process that makes no graph later.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    whole = span(report, selection)
    series = [
        first
        for first in first_graphs(report, selection, fewest)
        if (first.end - first.begin) * 100 >= (least if len(first.made) >= fewest else alone) * whole
    ]
    if not series:
        return []
    longest = max(series, key=lambda own: own.end - own.begin)
    begin, end, process, made = longest.begin, longest.end, longest.process, longest.made
    number, during = len(made), Cover([begin], [end])
    lost = [gpu.idle.both(during) for gpu in devices if gpu.process == process]
    idle = max((cover.total for cover in lost), default=0)
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
            title=f"{counted(number, 'CUDA graph')} {was(number)} captured at the start, within {duration(end - begin)}",
            cause=f"That is start-up, {percent((end - begin) / whole, 1)} of the time; "
            f"{counted(longest.launches, 'launch')} of graphs followed. Capturing took "
            f"{duration(longest.capturing)} of it; the rest is other work in between, such as "
            "warm-up runs. The GPU had "
            f"nothing to do for {duration(idle)}.",
            fix="Leave the start out of averages and comparisons (--filter-time, --delay, a capture range), or capture fewer batch sizes.",
            evidence=tuple(evidence[:rows]),
            occurrences=number,
            bound=idle or None,
            estimate=0 if idle else None,
            confidence="high",
            severity=None if idle else "low",
            claim=Cover(*(np.concatenate([getattr(own, edge) for own in lost]) for edge in ("start", "end")))
            if idle
            else None,
        )
    ]
