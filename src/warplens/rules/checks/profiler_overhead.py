"""The recording took too much time to trust the figures.

## What it looks for
Two costs, each compared with the program's work on one thread; more than 5 % is reported:

- Writing of records: the rows of each thread times the cost of one (`docs/performance.md`; for NVTX
  measured during the run itself).
- Tracing by the driver: `Buffer flush`, `Instrumentation` and `Resource` in the table `overhead`,
  without flushes on the driver's own threads.

The program's work is its steps and the time from the first to the last operation of each GPU, or
the whole time if there is neither. Driver tracing outside of the work, mostly at its start, is
reported as information.

## Why it costs time
Each recorded range, call and sample takes time on its thread: tens of nanoseconds for a range, more
for calls of the C library and Python functions. If these are short and many, the program runs
slower than without recording, and the most frequent calls look worse than they are.

## What to do
Record less: leave out unneeded sources (`-t`), raise thresholds (`--osrt-threshold`), annotate
larger pieces of code, trace fewer Python functions, or record only a part of the run
(`--capture-range`, `--duration`).

## When it does not apply
If the machine is faster or slower than the one on which the costs were measured. CUPTI itself makes
each CUDA call slower; the rule does not know by how much unless CUPTI reports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.gpus import gpus
from warplens.rules.hosts import edges, numbers, rows, threads

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/nsight-systems/UserGuide/index.html#profiling-overhead"
SCOPE = "run"
# ns that recording a row takes on the thread that it is about: docs/performance.md
_COSTS = {
    "nvtx_ranges": 60,
    "nvtx_marks": 30,
    "cuda_api": 100,
    "osrt": 190,
    "gc": 1_500,
    "gil": 60,
    "python_calls": 150,
}
_SOURCE = {
    "nvtx_ranges": "nvtx",
    "nvtx_marks": "nvtx",
    "cuda_api": "cuda",
    "osrt": "osrt",
    "gc": "gc",
    "gil": "gil",
    "python_calls": "python-functions",
}
_PIECES = 200  # stretches of work that a condition of SQL names one by one
_KINDS = ("Buffer flush", "Instrumentation", "Resource")
_FELT = (
    "NOT (kind = 'Buffer flush' AND thread IS NULL)"  # the program does not wait for threads of the recording
)


def check(report: Report, selection: Selection, *, least: float = 5) -> list[Finding]:
    """Return a finding for each thing whose recording took too long.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time that it must take, on one thread.
    """
    own = not any(
        "by" in source for manifest in report.manifests for source in manifest.sources.values()
    )  # else other tools made it
    if not own and not report.tables["overhead"]:
        raise MissingData(f"does not contain the cost of its recording{selection.place(report)}.")
    work = _work(report, selection)
    names = threads(report)
    findings = []
    for table, cost in _costs(report).items() if own else ():
        number = "sum(holds + waits)" if table == "gil" else "count(*)"
        inside = " OR ".join(f'"start" BETWEEN {start} AND {end}' for start, end in _stretches(work))
        text = f"""SELECT thread, process, {number}::BIGINT AS number FROM {table} WHERE {during(report, selection)} AND ({inside})
                   GROUP BY ALL ORDER BY number DESC, thread LIMIT 1"""
        for row in report.sql(text).to_pylist():
            spent = round(row["number"] * cost)
            if spent * 100 < least * work.total:
                continue
            name = names.get(row["thread"], "a thread")
            findings.append(
                Finding(
                    rule="profiler_overhead",
                    subject=f"rows of {table}",
                    title=f"Recording {counted(row['number'], 'row')} of {table} took {name} about {duration(spent)}",
                    cause=f"Each costs about {cost:.0f} ns on its thread, {percent(spent / work.total)} of the program's work.",
                    fix="Record less of it: larger ranges, a higher threshold, or only a part of the run.",
                    evidence=(
                        Evidence(
                            table="threads",
                            id=row["thread"],
                            start=int(work.start[0]),
                            end=int(work.end[-1]),
                            text=name,
                            process=row["process"],
                            thread=row["thread"],
                        ),
                    ),
                    occurrences=row["number"],
                    bound=min(spent, work.total),
                    estimate=min(spent, work.total),
                    confidence="medium",
                )
            )
    findings += _by_driver(report, selection, work, least=least)
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _costs(report: Report) -> dict[str, float]:
    """Return what a row of each table costs: as it was measured in the run, where it was."""
    measured = {
        name: source["cost_ns"]
        for manifest in report.manifests
        for name, source in manifest.sources.items()
        if source.get("cost_ns")
    }
    return {
        table: float(measured.get(_SOURCE[table], cost))
        for table, cost in _COSTS.items()
        if report.tables[table]
    }


def _work(report: Report, selection: Selection) -> Cover:
    """Return when the program did its main work, else all the time.

    Its steps, and from the first to the last operation of each GPU.
    """
    begin, end = edges(report, selection)
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    with suppress(MissingData):
        devices = gpus(report, selection)
        starts.append(np.array([gpu.begin for gpu in devices], np.int64))
        ends.append(np.array([gpu.finish for gpu in devices], np.int64))
    with suppress(MissingData):
        known = steps(report, selection)  # there may be millions
        starts.append(numbers(known, "start"))
        ends.append(numbers(known, "end"))
    whole = Cover([begin], [end])
    work = Cover(np.concatenate(starts), np.concatenate(ends)).both(whole)
    return work if work.total else whole


def _stretches(work: Cover) -> list[tuple[int, int]]:
    """Return the work in pieces for a condition of SQL; many are taken for one."""
    if len(work.start) > _PIECES:
        return [(int(work.start[0]), int(work.end[-1]))]
    return list(zip(work.start.tolist(), work.end.tolist(), strict=True))


def _by_driver(report: Report, selection: Selection, work: Cover, least: float) -> list[Finding]:
    kinds = ", ".join(f"'{kind}'" for kind in _KINDS)
    flushes = rows(
        report,
        selection,
        "id, process, thread, kind",
        table="overhead",
        where=f"kind IN ({kinds}) AND {_FELT}",
    ).to_pylist()
    inside: list[dict[str, Any]] = []
    outside: list[dict[str, Any]] = []
    for row in flushes:
        within = int(work.within(np.array([row["start"]]), np.array([row["end"]]))[0])
        (inside if within else outside).append(row)
    felt = Cover([row["start"] for row in inside], [row["end"] for row in inside]).both(work)
    if felt.total * 100 >= least * work.total and felt.total:
        return [
            Finding(
                rule="profiler_overhead",
                subject="tracing of CUDA",
                title=f"The tracing of CUDA worked for {duration(felt.total)}",
                cause=f"{counted(len(inside), 'time')} it flushed buffers or instrumented code, "
                f"{percent(felt.total / work.total)} of the program's "
                "work; calls of CUDA wait for it.",
                fix="Record a shorter part, or fewer kinds of CUDA calls; leave these times out of "
                "comparisons.",
                evidence=most(_evidence(inside)),
                occurrences=len(inside),
                bound=felt.total,
                estimate=felt.total,
                confidence="high",
            )
        ]
    begin, end = edges(report, selection)
    start = Cover([row["start"] for row in outside], [row["end"] for row in outside])
    if start.total * 100 < least * (end - begin) or not start.total:
        return []
    return [
        Finding(
            rule="profiler_overhead",
            subject="tracing of CUDA outside of the work",
            title=f"The tracing of CUDA worked for {duration(start.total)} outside of the program's work",
            cause=f"{counted(len(outside), 'time')} it prepared itself or flushed buffers before the "
            "first step and operation of a GPU, between steps, or after the last. The work itself is "
            "not slower.",
            fix="Nothing; leave this time out of comparisons of the whole run.",
            evidence=most(_evidence(outside)),
            occurrences=len(outside),
        )
    ]


def _evidence(flushes: list[dict[str, Any]]) -> Iterator[Evidence]:
    return (
        Evidence(
            table="overhead",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=row["kind"],
            process=row["process"],
            thread=row["thread"],
        )
        for row in flushes
    )
