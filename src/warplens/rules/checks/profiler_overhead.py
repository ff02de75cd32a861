"""The recording itself took so much time that the figures cannot be trusted.

## What it looks for
How long threads spent in writing what was recorded: the rows of each thread times what one costs (`docs/performance.md`; for NVTX what
was measured in the run itself), and the time in which the driver's own tracing worked (`Buffer flush`, `Instrumentation` and `Resource`
in the table `overhead`; not those flushes that no thread of the program makes). More than 5 % of the time that is looked at, on one thread.

## Why it costs time
Each range, call and sample that is recorded takes time on the thread that makes it: tens of nanoseconds for a range, more for calls of
the C library and functions of Python. Where these are short and many, the program is slower than without, and what is called most looks
worse than it is.

## What to do
Record less: leave out the sources that you do not need (`-t`), raise thresholds (`--osrt-threshold`), annotate larger pieces, trace fewer
functions of Python, record only a part (`--capture-range`, `--duration`).

## When it is wrong
The costs of a row are those of the machine on which they were measured: a slow CPU takes longer. What CUPTI itself adds to each call of
CUDA is not known to this rule where it does not report it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import edges, rows, threads

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/nsight-systems/UserGuide/index.html#profiling-overhead"
SCOPE = "run"
# ns that recording a row takes on the thread that it is about: docs/performance.md
_COSTS = {"nvtx_ranges": 60, "nvtx_marks": 30, "cuda_api": 100, "osrt": 190, "gc": 1_500, "gil": 60, "python_calls": 150}
_SOURCE = {
    "nvtx_ranges": "nvtx",
    "nvtx_marks": "nvtx",
    "cuda_api": "cuda",
    "osrt": "osrt",
    "gc": "gc",
    "gil": "gil",
    "python_calls": "python-functions",
}
_KINDS = ("Buffer flush", "Instrumentation", "Resource")
_FELT = "NOT (kind = 'Buffer flush' AND thread IS NULL)"  # the program does not wait for threads of the recording


def check(report: Report, selection: Selection, *, least: float = 5) -> list[Finding]:
    """Return a finding for each thing whose recording took too long.

    Args:
        report: the report.
        selection: which part of it.
        least: percent of the time looked at that it must take, on one thread.
    """
    own = not any("by" in source for manifest in report.manifests for source in manifest.sources.values())  # else other tools made it
    if not own and not report.tables["overhead"]:
        raise MissingData(f"does not say what its recording cost{selection.place(report)}.")
    begin, end = edges(report, selection)
    names = threads(report)
    findings = []
    for table, cost in _costs(report).items() if own else ():
        number = "sum(holds + waits)" if table == "gil" else "count(*)"
        text = f"""SELECT thread, process, {number}::BIGINT AS number FROM {table} WHERE {during(report, selection)}
                   GROUP BY ALL ORDER BY number DESC, thread LIMIT 1"""
        for row in report.sql(text).to_pylist():
            spent = round(row["number"] * cost)
            if spent * 100 < least * (end - begin):
                continue
            name = names.get(row["thread"], "a thread")
            findings.append(
                Finding(
                    "profiler_overhead",
                    f"rows of {table}",
                    f"Recording {counted(row['number'], 'row')} of {table} took {name} about {duration(spent)}",
                    f"Each costs about {cost:.0f} ns on the thread that makes it, {spent / (end - begin):.0%} of the time.",
                    "Record less of it: larger pieces, a higher threshold, or only a part of the run.",
                    (Evidence("threads", row["thread"], begin, end, name, row["process"], row["thread"]),),
                    row["number"],
                    min(spent, end - begin),
                    min(spent, end - begin),
                    "medium",
                )
            )
    findings += _by_driver(report, selection, least)
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _costs(report: Report) -> dict[str, float]:
    """Return what a row of each table costs: as it was measured in the run, where it was."""
    measured = {
        name: source["cost_ns"] for manifest in report.manifests for name, source in manifest.sources.items() if source.get("cost_ns")
    }
    return {table: float(measured.get(_SOURCE[table], cost)) for table, cost in _COSTS.items() if report.tables[table]}


def _by_driver(report: Report, selection: Selection, least: float) -> list[Finding]:
    begin, end = edges(report, selection)
    kinds = ", ".join(f"'{kind}'" for kind in _KINDS)
    flushes = rows(report, selection, "id, process, thread, kind", "overhead", f"kind IN ({kinds}) AND {_FELT}").to_pylist()
    cover = Cover([row["start"] for row in flushes], [row["end"] for row in flushes])
    if not flushes or cover.total * 100 < least * (end - begin):
        return []
    evidence = (Evidence("overhead", row["id"], row["start"], row["end"], row["kind"], row["process"], row["thread"]) for row in flushes)
    return [
        Finding(
            "profiler_overhead",
            "tracing of CUDA",
            f"The tracing of CUDA worked for {duration(cover.total)}",
            f"{counted(len(flushes), 'time')} it flushed buffers or instrumented code, {cover.total / (end - begin):.0%} of the time; "
            "calls of CUDA wait for it.",
            "Record a shorter part, or fewer kinds of CUDA calls; leave what lies in these times out of comparisons.",
            most(evidence),
            len(flushes),
            cover.total,
            cover.total,
            "high",
        )
    ]
