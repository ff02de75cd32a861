"""Writes CPU samples, context switches and file accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.cpu.samples import kind_of
from warplens.errors import MissingData
from warplens.exporters.nsys.database import Writer, places
from warplens.exporters.nsys.stacks import Stacks
from warplens.exporters.nsys.tables import rows
from warplens.model.nsys_labels import FILE_OPERATIONS
from warplens.report.quoting import quoted

if TYPE_CHECKING:
    from warplens.report import Report

_REASONS = "ENUM_SCHEDULING_THREAD_BLOCK"
_FIRST_REASON = 1000  # above nsys' own
_RUNNING, _RUNNABLE, _WAITING = 1, 6, 7


def samples(writer: Writer, report: Report, stacks: Stacks, kind: str) -> int:
    """Write a row for each sample, with its call chain.

    Return what one stands for (ns), 0: there are none.
    """
    if not report.tables["samples"]:
        return 0
    try:
        kind = kind_of(report, kind)
    except MissingData:
        return 0
    written = 0
    text = f"""
    SELECT t.start - $origin + i * ((t."end" - t.start) // greatest(t."count" - 1, 1)) AS start, cpu,
           CASE WHEN on_cpu THEN {_RUNNING} ELSE {_WAITING} END AS threadState, gtid AS globalTid, stack
    FROM (SELECT *, unnest(range("count")) AS i FROM samples WHERE kind = '{kind}') t JOIN g ON t.thread = g.thread
    """
    for batch in rows(report, text):
        ids = np.arange(written + 1, written + 1 + batch.num_rows)
        written += batch.num_rows
        values = {name: batch.column(name) for name in ("start", "cpu", "threadState", "globalTid")}
        writer.write("COMPOSITE_EVENTS", {"id": ids, **values, "cpuCycles": np.ones(len(ids), np.int64)})
        numbers = places(stacks.keys, batch.column("stack")).to_numpy()
        if stacks.keys.size:
            stacks.write(writer, "SAMPLING_CALLCHAINS", ids[numbers > 0], numbers[numbers > 0])
    summed = report.sql(
        f"""SELECT sum(weight)::BIGINT AS w, sum("count")::BIGINT AS n FROM samples WHERE kind = '{kind}'"""
    ).to_pylist()[0]
    return round(summed["w"] / summed["n"]) if summed["n"] else 0


def switches(writer: Writer, report: Report) -> dict[str, dict[int, str]]:
    """Write a row for the start of each state of a thread, and one where unknown time follows.

    Return the reasons of waiting.
    """
    if not report.tables["thread_states"]:
        return {}
    texts = (
        report.sql("SELECT DISTINCT reason FROM thread_states WHERE reason IS NOT NULL ORDER BY 1")
        .column(0)
        .to_pylist()
    )
    reasons = {_FIRST_REASON + place: text for place, text in enumerate(texts)}
    block = " ".join(f"WHEN {quoted(text)} THEN {key}" for key, text in reasons.items())
    text = f"""
    , s AS (
        SELECT *, lead(start) OVER own AS next, coalesce(cpu, lag(cpu) OVER own, 0) AS place FROM thread_states
        WINDOW own AS (PARTITION BY thread ORDER BY start, id)
    )
    SELECT t.start - $origin AS start, place AS cpu, (state = 'running')::INT AS isSchedIn, gtid AS globalTid,
           CASE state WHEN 'running' THEN NULL WHEN 'runnable' THEN {_RUNNABLE} ELSE {_WAITING} END AS threadState,
           {f"CASE reason {block} END" if reasons else "NULL"} AS threadBlock FROM s t JOIN g ON t.thread = g.thread
    UNION ALL
    SELECT t."end" - $origin, place, 0, gtid, 0, NULL FROM s t JOIN g ON t.thread = g.thread WHERE next IS NULL OR next > t."end"
    """
    for batch in rows(report, text):
        writer.write("SCHED_EVENTS", dict(zip(batch.schema.names, batch.columns, strict=True)))
    return {_REASONS: reasons} if reasons else {}


def file_access(writer: Writer, report: Report) -> None:
    """Write the accesses, and the file of each."""
    if not report.tables["file_access"]:
        return
    files = """
    , f AS (
        SELECT process, path, row_number() OVER (ORDER BY process, path) AS number, min(start) AS first, max("end") AS last
        FROM file_access GROUP BY process, path
    )
    """
    for batch in rows(
        report,
        f"""{files} SELECT number AS "fileAccessId", gpid AS "processId", first - $origin AS "openedAt", last - $origin AS "closedAt",
        coalesce(path, '') AS "filePath" FROM f JOIN q USING (process)""",
    ):
        writer.write(
            "OSRT_FILE_ACCESS_DESCRIPTORS", dict(zip(batch.schema.names, batch.columns, strict=True))
        )
    kinds = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(FILE_OPERATIONS))
    text = f"""{files} SELECT number, gtid, t.start - $origin AS begin, t."end" - $origin AS behind,
    CASE operation {kinds} ELSE 0 END AS kind, t.name AS name, coalesce(bytes, 0) AS bytes
    FROM file_access t JOIN g ON t.thread = g.thread JOIN f ON f.process = t.process AND f.path IS NOT DISTINCT FROM t.path"""
    for batch in rows(report, text):
        number, thread, begin, behind, kind, name, size = batch.columns
        writer.write(
            "OSRT_FILE_ACCESS_EVENTS",
            {
                "fileAccessId": number,
                "threadId": thread,
                "startedAt": begin,
                "endedAt": behind,
                "eventType": kind,
                "apiCallId": writer.strings(name),
                "bytesProcessed": size,
                "context": [""] * batch.num_rows,
            },
        )
