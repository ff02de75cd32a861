"""Sums samples by thread and stack, for trees, hotspots and exports of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warplens.analysis.once import once
from warplens.analysis.ranges.phases import pieces
from warplens.errors import MissingData, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report
    from warplens.report.selection import Selection

KINDS = ("python", "native", "osrt", "tasks")
_CALLS = """(SELECT process, thread, "start", "end", 'osrt' AS kind, 1 AS "count", "end" - "start" AS weight, true AS on_cpu, stack, "range"
    FROM osrt WHERE stack IS NOT NULL)"""
# A task that awaits another one is in the stack of that one already.
_TASKS = """(SELECT process, thread, "start", "end", 'tasks' AS kind, "count", weight, state = 'running' AS on_cpu, stack,
    NULL::BIGINT AS "range" FROM task_samples WHERE NOT "outer")"""
_IDLE = 0.98  # share of its time that a thread waits at one place, from which on it only idles
# `blocked`: share of a thread's time, null if its states were not recorded. Then a sample says whether the thread ran: one that
# polls runs a little between any two samples.
_WAITING = f"""WITH places AS (SELECT thread, stack, sum(weight) AS weight, sum(weight) FILTER (NOT on_cpu) AS waited
                             FROM samples WHERE kind = 'python' GROUP BY ALL),
    states AS (SELECT thread, coalesce(sum("end" - "start") FILTER (state = 'blocked'), 0) / sum("end" - "start") AS blocked
               FROM thread_states GROUP BY thread)
    SELECT thread FROM places LEFT JOIN states USING (thread) GROUP BY thread
    HAVING max(coalesce(weight * blocked, waited)) >= {_IDLE} * sum(weight)"""
# The threads of `waiting_threads`, without main threads.
IDLE_THREADS = f"""({_WAITING}
    EXCEPT SELECT t.thread FROM threads t JOIN processes p ON p.process = t.process AND p.pid = t.tid)"""
_RELATIONS = {"osrt": _CALLS, "tasks": _TASKS}

_NAMED = "CASE WHEN r.id IS NOT NULL THEN coalesce(r.domain, '') || ':' || coalesce(r.message, '') END"


def kind_of(report: Report, asked: str = "auto", *, wall: bool = False) -> str:
    """Return the kind of samples to use: `native` if there are any, else `python`.

    Native samples contain Python frames.

    `asked`: `python`, `native`, `auto`, `osrt` (calls of the C library that have a stack, each a sample of its length) or `tasks` (of
    asyncio, each below the one that awaits it); `wall`: of threads and tasks that waited, too, which `native` has not. Raises UsageError
    for what does not go together, MissingData if there are none.
    """
    if asked not in ("auto", *KINDS):
        raise UsageError(f"`:kind={asked}` is unknown; choose from: auto, {', '.join(KINDS)}.")
    if asked == "osrt":
        if (
            not report.tables["osrt"]
            or not report.sql("SELECT 1 FROM osrt WHERE stack IS NOT NULL LIMIT 1").num_rows
        ):
            raise MissingData("does not contain OS runtime data with stacks.")
        return asked
    if asked == "tasks":
        if not report.tables["task_samples"]:
            raise MissingData("does not contain samples of asyncio tasks.")
        return asked
    if wall and asked == "native":
        raise UsageError("native samples show running threads only: use `:kind=python` with `:wall`.")
    if not report.tables["samples"]:
        raise MissingData("does not contain CPU sampling data.")
    known = {row["kind"] for row in report.sql("SELECT DISTINCT kind FROM samples").to_pylist()}
    if asked != "auto" and asked not in known:
        raise MissingData(f"does not contain CPU sampling data of the kind {asked}.")
    wanted = asked if asked != "auto" else "python" if wall or "native" not in known else "native"
    if wanted not in known:
        raise MissingData(
            "does not contain CPU sampling data of waiting threads: native samples show running threads only."
        )
    return wanted


def sampled(
    report: Report,
    selection: Selection,
    *,
    kind: str = "python",
    wall: bool = False,
    exceptions: bool = False,
    per: Sequence[str] = ("process", "thread"),
) -> pa.Table:
    """Return `weight` (ns) and `count` (samples) of each combination of `per` and `stack`.

    No rows if there is none.

    Args:
        report: the report.
        selection: which part of it; of samples that reach over its edge, their share.
        kind: as `kind_of` returns it. They may have seen the same moment: never add them up.
        wall: also samples of threads or tasks that waited (native ones are of running threads only).
        exceptions: only samples of threads that handled an exception (Python ones).
        per: columns of `samples` to keep apart; `range` becomes the `domain:name` of the innermost push/pop range.
    """
    columns = ", ".join(
        f'{_NAMED if name == "range" else f"s.{name}"} AS "{name}"' for name in (*per, "stack")
    )
    ranges = "LEFT JOIN nvtx_ranges r ON s.range = r.id" if "range" in per else ""
    ran = " AND s.on_cpu" if kind in ("python", "tasks") and not wall else ""
    ran += " AND s.exception" if exceptions else ""
    whole = selection.time is None and selection.nvtx is None
    table = _RELATIONS.get(kind, "samples")
    relation = table if whole else pieces(report, selection, table)
    weight, count = (
        ("s.weight", 's."count"') if whole else ("round(s.weight * part)", 'round(s."count" * part)')
    )
    text = f"""
    SELECT {columns}, sum({weight})::BIGINT AS weight, sum({count})::BIGINT AS "count"
    FROM {relation} s {ranges} WHERE s.kind = '{kind}'{ran} GROUP BY ALL ORDER BY ALL
    """
    return report.sql(text)


@once
def waiting_threads(report: Report) -> frozenset[int]:
    """Return the threads that did next to nothing but wait at one place: helpers that were not needed."""
    return frozenset(report.sql(_WAITING)["thread"].to_pylist())


def without_idle(report: Report, rows: pa.Table) -> tuple[pa.Table, int]:
    """Leave threads out of `sampled` rows that did next to nothing but wait at one place; return their number, too.

    Main threads stay, and all threads if nothing else remains.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    idle = report.sql(f"SELECT thread FROM {IDLE_THREADS}")
    there = pc.is_in(idle["thread"], value_set=rows["thread"].combine_chunks().unique())
    known = idle["thread"].filter(there).combine_chunks()
    kept = rows.filter(pc.invert(pc.is_in(rows["thread"], value_set=pa.array(known, pa.int64()))))
    return (kept, len(known)) if kept.num_rows else (rows, 0)
