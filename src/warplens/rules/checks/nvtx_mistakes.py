"""NVTX annotations that do not measure the code that their author intended.

## What it looks for
Three mistakes:

- Ranges that were pushed or started and never ended, in a process that ended by itself: two or more
  of one name on one thread.
- Push/pop ranges that cross: a range ends inside another one that began in it, three times or more.
- A domain with more than 1,000 names, in which most ranges have a unique name. Names that PyTorch
  numbers do not count.

## Why it costs time
It costs none, but figures are wrong. A range that is never popped contains everything that follows
on its thread, and each later pop ends the wrong range. Ranges that cross have no place in a tree,
so that their contents are counted in the wrong one. Ranges with unique names cannot be summed, and
each name takes memory in the program and in the report.

## What to do
Use `with annotate(…)` (RAII in C++), which ends its range also after an exception. Use start/end
ranges for code that does not nest or that ends in another thread. Put numbers into the payload
instead of the name: `annotate("step", payload=7)`.

## When it does not apply
If the thread was meant to be in the range until the program ended. If ranges of two libraries
cross, and each library nests its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.flatten import outlived
from warplens.errors import MissingData
from warplens.model.words import counted
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import numbers, rows

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

_AT_ONCE = 1_000_000  # ranges
_SHOWN = 50
LINK = "https://nvidia.github.io/NVTX/"
SCOPE = "run"


def check(
    report: Report, selection: Selection, *, unfinished: int = 2, crossing: int = 3, names: int = 1000
) -> list[Finding]:
    """Return a finding for each kind of mistake and name.

    Args:
        report: the report.
        selection: the part to use.
        unfinished: minimum number of open ranges of one name on one thread.
        crossing: minimum number of crossing ranges.
        names: maximum number of names in a domain.
    """
    if not report.tables["nvtx_ranges"]:
        raise MissingData(f"does not contain NVTX ranges{selection.place(report)}.")
    return [
        *_unfinished(report, selection, unfinished),
        *_crossing(report, selection, crossing),
        *_names(report, names),
    ]


def _unfinished(report: Report, selection: Selection, least: int) -> list[Finding]:
    ended = "process IN (SELECT process FROM processes WHERE exited)"
    where = f"unfinished AND NOT inherited AND NOT clipped AND {ended}"
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows(
        report, selection, "id, process, thread, message, domain, style", table="nvtx_ranges", where=where
    ).to_pylist():
        groups.setdefault((row["thread"], row["domain"], row["message"], row["style"]), []).append(row)
    findings = []
    for (_, _, message, style), unfinished in groups.items():
        if len(unfinished) >= least:
            begun, ended = ("pushed", "popped") if style == "PushPop" else ("started", "ended")
            findings.append(
                Finding(
                    rule="nvtx_mistakes",
                    subject=f"unfinished {message or '[no name]'}",
                    title=f"{counted(len(unfinished), 'range')} {message or '[no name]'} {begun} and never {ended}",
                    cause="They were still open when the process ended by itself: everything after "
                    "each start counts as a part of it.",
                    fix="Use `with annotate(…)`, or end the range in a `finally`; in C++ a scoped range.",
                    evidence=most(_rows(unfinished)),
                    occurrences=len(unfinished),
                    wrong_when="If the thread was meant to stay in the range until the program ended.",
                )
            )
    return findings


def _crossing(report: Report, selection: Selection, least: int) -> list[Finding]:
    where = (
        "style = 'PushPop' AND task IS NULL AND NOT unfinished AND (domain IS NULL OR domain <> 'pytorch')"
    )
    # within a domain they are a stack, and cannot cross
    several = f"""SELECT thread, count(*) AS ranges FROM nvtx_ranges WHERE {where} GROUP BY thread
      HAVING count(DISTINCT coalesce(domain, '')) > 1 ORDER BY thread"""
    number, longest = 0, np.empty((2, 0), np.int64)  # length below 0, id
    for threads in _some_at_once(report.sql(several)):
        mine = f"{where} AND thread IN ({', '.join(map(str, threads))})"
        ranges = rows(report, selection, "id, thread", table="nvtx_ranges", where=mine)
        thread, start, end = (numbers(ranges, name) for name in ("thread", "start", "end"))
        order = np.lexsort((-end, start, thread))
        # `own`: the ranges of one thread, in order of start, the outer one first.
        for own in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1) if len(order) else []:
            kept = own[outlived(start[own], end[own])]
            number += len(kept)
            longest = np.concatenate([longest, [start[kept] - end[kept], numbers(ranges, "id")[kept]]], 1)
            longest = longest[:, np.argsort(longest[0], kind="stable")[:_SHOWN]]
    if number < least:
        return []
    ids = ", ".join(map(str, longest[1].tolist()))
    crossed = rows(
        report, selection, "id, process, thread, message", table="nvtx_ranges", where=f"id IN ({ids})"
    ).to_pylist()
    texts = list(dict.fromkeys(row["message"] or "[no name]" for row in crossed))
    return [
        Finding(
            rule="nvtx_mistakes",
            subject="crossing ranges",
            title=f"{counted(number, 'push/pop range')} ended within another that began in it",
            cause=f"Such as {', '.join(texts[:3])}. Push/pop ranges of a thread should nest; these "
            "were popped in a different order than pushed, which is only possible across "
            "domains.",
            fix="Use `with annotate(…)`, which nests; use start/end ranges for code that overlaps.",
            evidence=most(_rows(crossed)),
            occurrences=number,
            confidence="medium",
            wrong_when="If ranges of two libraries cross, and each library nests its own.",
        )
    ]


def _some_at_once(threads: pa.Table) -> Iterator[list[int]]:
    """Return the threads in groups that have few enough ranges to be looked at together.

    A thread with many stands alone.
    """
    group: list[int] = []
    ranges = 0
    for row in threads.to_pylist():
        if group and ranges + row["ranges"] > _AT_ONCE:
            yield group
            group, ranges = [], 0
        group.append(row["thread"])
        ranges += row["ranges"]
    if group:
        yield group


def _names(report: Report, least: int) -> list[Finding]:
    text = """WITH names AS (
        SELECT domain, message, count(*) AS number, min("start") AS first, max("end") AS last, min(id) AS id, min(process) AS process
        FROM nvtx_ranges WHERE coalesce(domain, '') <> 'pytorch' AND message IS NOT NULL GROUP BY domain, message)
      SELECT domain, count(*) AS names, sum(number)::BIGINT AS ranges, min(first) AS first, max(last) AS last,
        any_value(message) AS example, min(id) AS id, min(process) AS process
      FROM names WHERE NOT regexp_matches(message::VARCHAR, ', (op_id|seq) = [0-9]+') GROUP BY domain"""
    findings = []
    for row in report.sql(text).to_pylist():
        if row["names"] <= least or row["names"] * 2 <= row["ranges"]:
            continue
        place = f"domain {row['domain']}" if row["domain"] else "the default domain"
        findings.append(
            Finding(
                rule="nvtx_mistakes",
                subject=f"names in {place}",
                title=f"{counted(row['names'], 'different name')} for {counted(row['ranges'], 'range')} in {place}",
                cause=f"Most ranges have a unique name, such as {row['example']}: nothing is summed by name, and each takes memory.",
                fix='Put the changing part into the payload: annotate("step", payload=7).',
                evidence=(
                    Evidence(
                        table="nvtx_ranges",
                        id=row["id"],
                        start=row["first"],
                        end=row["last"],
                        text=f"{counted(row['ranges'], 'range')}",
                        process=row["process"],
                    ),
                ),
                occurrences=row["names"],
                wrong_when="If one of your tools reads these names.",
            )
        )
    return findings


def _rows(ranges: list[dict[str, Any]]) -> list[Evidence]:
    return [
        Evidence(
            table="nvtx_ranges",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=row["message"] or "[no name]",
            process=row["process"],
            thread=row["thread"],
        )
        for row in ranges
    ]
