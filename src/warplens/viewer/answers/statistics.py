"""The tables of other commands for the page's panels: stats, findings, steps, diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warplens import catalog
from warplens.catalog import Unit
from warplens.errors import MissingData
from warplens.report.selection import Selection
from warplens.viewer import limits
from warplens.viewer.answers.event_address import by_id, located
from warplens.viewer.answers.plain import cut
from warplens.viewer.answers.tables import shown, time_links

if TYPE_CHECKING:
    from warplens.rules.base import Evidence
    from warplens.viewer.answers.loaded_report import Opened

STATS = "stats.tables"
_EVIDENCE = 50
_ON_GPU = ("kernels", "memcpys", "memsets", "graphs")
# Tables of which one must have rows so that a stat, by the first words of its name, can have an answer.
_NEEDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("nvtx_counter", ("nvtx_counter_samples",)),
    ("nvtx_mark", ("nvtx_marks",)),
    ("nvtx_kern", ("kernels",)),
    ("nvtx_gpu", ("kernels", "memcpys", "memsets", "graphs")),
    ("nvtx", ("nvtx_ranges",)),
    ("cuda_api", ("cuda_api",)),
    ("cuda_gpu_kern", ("kernels",)),
    ("cuda_gpu_mem", ("memcpys", "memsets", "um_events")),
    ("cuda_kern", ("kernels",)),
    ("cuda", ("kernels", "memcpys", "memsets", "graphs")),
    ("collective", ("collectives",)),
    ("nccl", ("collectives", "kernels", "nvtx_ranges")),
    ("gpu_memory", ("gpu_memory", "tensor_memory")),
    ("gpu_metrics", ("gpu_metrics",)),
    ("memory_bandwidth", ("memcpys", "memsets")),
    ("step_breakdown", ("nvtx_ranges",)),
    ("op_", ("ops",)),
    ("python_calls", ("python_calls",)),
    ("python_hotspots", ("samples", "python_calls")),
    ("cpu_hotspots", ("samples",)),
    ("thread_state", ("thread_states",)),
    ("osrt", ("osrt",)),
    ("file_access", ("osrt",)),
    ("syscall", ("syscalls",)),
    ("gc", ("gc",)),
    ("gil", ("gil",)),
    ("import", ("imports",)),
    ("mpi", ("mpi_events",)),
    ("openmp", ("openmp_events",)),
    ("openacc", ("openacc_events",)),
    ("um_", ("um_events",)),
    ("intrakernel", ("intrakernel_launches",)),
    *(
        (name, _ON_GPU)
        for name in (
            "comm_comp",
            "critical_path",
            "gpu_idle",
            "gpu_util",
            "kernel_",
            "launch_",
            "queue_",
            "temporal_",
        )
    ),
)
# Stats that list events, and which events those are.
EVENTS = {
    "cuda_api_trace": ("cuda_api",),
    "cuda_gpu_trace": (*_ON_GPU, "um_events"),
    "cuda_kern_exec_trace": ("cuda_api",),
    "nvtx_pushpop_trace": ("nvtx_ranges",),
    "nvtx_startend_trace": ("nvtx_ranges",),
    "nvtx_mark_trace": ("nvtx_marks",),
    "nvtx_gpu_proj_trace": ("nvtx_gpu_projection",),
    "nccl_trace": ("collectives", "kernels", "nvtx_ranges"),
    "osrt_trace": ("osrt",),
    "mpi_event_trace": ("mpi_events",),
    "intrakernel_timeline": ("intrakernel_events", "intrakernel_marks"),
}


def selection(opened: Opened, begin: int | None, end: int | None) -> Selection:
    """Return the part of the report from `begin` to `end`, ns from its origin; None: all of it."""
    return (
        Selection()
        if begin is None or end is None
        else Selection(time=(max(begin, 0), max(end, begin + 1, 1)))
    )


def stat_list(opened: Opened) -> list[dict[str, Any]]:
    """Return `StatInfo` of all stats.

    One is available where the report has rows of what it looks at.
    """
    tables = opened.report.tables
    return [
        {"name": unit.id, "title": unit.summary.rstrip("."), "available": _has(tables, unit)}
        for unit in sorted(catalog.units(STATS), key=_rank)
    ]


def stat(opened: Opened, name: str, begin: int | None, end: int | None) -> dict[str, Any]:
    """Return one stat as `Table`. Raises UsageError for one that does not exist, MissingData."""
    from warplens.stats.base import notes

    unit = catalog.find(STATS, name)
    with opened.asking() as report:
        table = unit.load().table(report, selection(opened, begin, end))
        links = None
        if unit.id in EVENTS and "Start (ns)" in table.column_names:
            starts = table.column("Start (ns)").slice(0, limits.ROWS).to_pylist()
            asked = [None if start is None else int(start) + opened.origin for start in starts]
            links = time_links(opened, report, asked, layers=EVENTS[unit.id])
    return shown(unit.summary.rstrip("."), table, links=links, note=" ".join(notes(table)))


def findings(opened: Opened) -> dict[str, Any]:
    """Return `Findings`: what the rules say of the whole report."""
    from warplens.rules.judging import judge

    with opened.asking() as report:
        judged = judge(report, Selection())
    return {
        "findings": [
            {
                "rule": one.rule,
                "subject": cut(one.subject),
                "title": cut(one.title),
                "cause": cut(one.cause),
                "fix": cut(one.fix),
                "link": one.link,
                "severity": one.severity or "info",
                "confidence": one.confidence,
                "bound": one.bound,
                "estimate": one.estimate,
                "shared": one.shared,
                "occurrences": one.occurrences,
                "wrongWhen": one.wrong_when,
                "evidence": [_evidence(opened, row) for row in one.evidence[:_EVIDENCE]],
            }
            for one in judged.distinct
        ],
        "notJudged": [{"rule": rule, "why": why} for rule, why in judged.not_judged.items()],
        "silent": list(judged.silent),
    }


def steps(opened: Opened, name: str = "") -> dict[str, Any]:
    """Return `Steps`: what each training step is made of; where there are none, `note` says why.

    `name`: what its ranges are called.
    """
    from warplens.analysis.steps.names import PARTS
    from warplens.analysis.steps.parts import parts
    from warplens.analysis.steps.steps import base_name
    from warplens.analysis.steps.steps import steps as find

    with opened.asking() as report:
        try:
            instances = find(report, Selection(), name or None).slice(0, limits.ROWS)
        except MissingData as error:
            what = str(error).partition(";")[0].rstrip(".")  # behind it is an option of the command line
            return {"name": name, "steps": [], "note": cut(f"The report {what}.")}
        taken = parts(report, instances)
    host = taken.time.sum(axis=2).tolist()
    rows = [
        {
            "number": row["index"],
            "process": row["process"],
            "rank": opened.entities.rank(row["process"]),
            "start": row["start"] - opened.origin,
            "end": row["end"] - opened.origin,
            "parts": dict(zip(PARTS, own, strict=True)),
        }
        for row, own in zip(instances.to_pylist(), host, strict=True)
    ]
    answer: dict[str, Any] = {"name": base_name(instances.column("name")[0].as_py()), "steps": rows}
    if not taken.gpu:
        answer["note"] = "No GPU work was recorded in these processes."
    return answer


def diagnostics(opened: Opened) -> dict[str, Any]:
    """Return what was lost, guessed or could not be recorded, as `Table`."""
    from warplens.viewer.answers.tables import with_origin

    rows = opened.report.table("diagnostics")
    waiting = [*opened.report.waiting, *opened.report.snapshots]
    return shown(
        "Diagnostics", with_origin(rows, opened.origin), note=" ".join(f"{text}." for text in waiting)
    )


def _has(tables: Mapping[str, int], unit: Unit) -> bool:
    """Whether a stat may have an answer.

    Of one that is not known here it is found out by asking.
    """
    needed = next((names for start, names in _NEEDS if unit.id.startswith(start)), ())
    return not needed or any(tables.get(name) for name in needed)


def _rank(unit: Unit) -> tuple[bool, float, str]:
    """Those that come unasked first, in their order."""
    place = unit.constant("DEFAULT")
    return place is False, float("inf") if place is None or place is False else float(place), unit.id


def _evidence(opened: Opened, row: Evidence) -> dict[str, Any]:
    place = None if row.id is None else by_id(opened, row.table, row.id, start=row.start)
    if place is None and row.table in opened.every_lane.layers:
        hit = opened.every_lane.next_of(row.table, row.start, row.start + 1)
        place = None if hit is None or hit.start != row.start else located(opened, hit)
    return {
        "text": cut(row.text),
        "start": row.start - opened.origin,
        "end": row.end - opened.origin,
        "event": place,
    }
