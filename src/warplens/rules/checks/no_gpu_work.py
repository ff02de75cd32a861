"""A program calls CUDA, but the report contains no GPU work.

## What it looks for
Processes with at least ten CUDA calls that launch a kernel or a graph, copy or set memory, if the
report has no kernel, graph, copy or memset of that process. The finding also says if these calls
returned errors.

## Why it costs time
It costs none. But no GPU rule can judge such a report: a report without findings may still have
problems.

## What to do
If the calls fail, read the program's messages, and look up the error numbers (column `result` of
`cuda_api`). Otherwise record GPU work as well: `nsys export` leaves it out if it was not traced,
and PyTorch's profiler if `ProfilerActivity.CUDA` is missing or another profiler uses CUPTI.
`warplens doctor` shows what prevents CUPTI from recording.

## When it does not apply
If the program was killed just after its first launches, before the GPU's records were fetched. If
all launches were captured into a graph that was never launched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.gpu.ops import during
from warplens.model.words import counted
from warplens.rules.base import Evidence, Finding
from warplens.rules.gpus import TABLES
from warplens.rules.host_calls import needed

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
SCOPE = "run"
_ISSUES = "regexp_matches(a.name::VARCHAR, '^(cuda|cu|hip)(Module|Ext)?(Launch|GraphLaunch|Memcpy|Memset)')"


def check(report: Report, selection: Selection, *, rows: int = 50, fewest: int = 10) -> list[Finding]:
    """Return a finding about failed calls, and one about unrecorded GPU work, by process.

    Args:
        report: the report.
        selection: the part to use; for each process the whole report counts.
        rows: maximum number of calls kept as evidence.
        fewest: minimum number of calls of a process that issue work.
    """
    needed(report, selection)
    worked = " UNION ".join(f"SELECT process FROM {table}" for table in TABLES)
    issuers = report.sql(
        f"""SELECT process, count(*) AS calls, count(*) FILTER (coalesce(result, 0) <> 0) AS failed FROM cuda_api a
            WHERE {_ISSUES} AND {during(report, selection)} AND process NOT IN ({worked}) GROUP BY process HAVING calls >= {fewest}
            ORDER BY process"""
    ).to_pylist()
    failing = [row for row in issuers if 2 * row["failed"] > row["calls"]]
    silent = [row for row in issuers if 2 * row["failed"] <= row["calls"]]
    findings = []
    if failing:
        number, failed = (sum(row[name] for row in failing) for name in ("calls", "failed"))
        findings.append(
            Finding(
                rule="no_gpu_work",
                subject="calls that fail",
                title=f"{failed:,} of {counted(number, 'call')} that give work to a GPU failed",
                cause=f"No GPU did anything for {_processes(failing)}.",
                fix="Look up the errors (column result of cuda_api): a kernel that was not built for this GPU, a wrong launch shape, an "
                "earlier error that every later call returns.",
                evidence=_calls(report, selection, failing, condition="coalesce(result, 0) <> 0", rows=rows),
                occurrences=failed,
                severity="medium",
            )
        )
    if silent:
        number = sum(row["calls"] for row in silent)
        findings.append(
            Finding(
                rule="no_gpu_work",
                subject="GPU work that is not in the report",
                title=f"{counted(number, 'call')} gave work to a GPU, and the report has no kernel, copy or memset",
                cause=f"What GPUs did for {_processes(silent)} was not recorded, or not exported. The "
                "silence of rules about GPUs says nothing "
                "about it.",
                fix="Record GPU work too: warplens profile -t cuda; nsys with -t cuda; PyTorch's profiler with ProfilerActivity.CUDA. "
                "`warplens doctor` shows what prevents CUPTI from recording.",
                evidence=_calls(report, selection, silent, condition="true", rows=rows),
                occurrences=number,
                severity="info",
            )
        )
    return findings


def _processes(some: list[dict[str, int]]) -> str:
    return "the process" if len(some) == 1 else f"{counted(len(some), 'process')}"


def _calls(
    report: Report, selection: Selection, some: list[dict[str, int]], condition: str, rows: int
) -> tuple[Evidence, ...]:
    of = ", ".join(str(row["process"]) for row in some)
    calls = report.sql(
        f"""SELECT id, process, thread, "start", "end", name::VARCHAR AS name, coalesce(result, 0) AS result FROM cuda_api a
            WHERE {_ISSUES} AND {during(report, selection)} AND process IN ({of}) AND {condition} ORDER BY "start" LIMIT {rows}"""
    ).to_pylist()
    return tuple(
        Evidence(
            table="cuda_api",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=f"{row['name']} returned {row['result']}" if row["result"] else row["name"],
            process=row["process"],
            thread=row["thread"],
            values={"result": row["result"]},
        )
        for row in calls
    )
