"""Python GIL Summary.

## What it shows
How long each thread held Python's global interpreter lock, how long it waited for it, and which
thread made the others wait.

## Columns
- Held (%), Held (ns): time in which the thread held the lock; the percentage is of the time in
  which any thread of its process held it. Holds: how often.
- Waited (ns), Waits: time in which it wanted the lock while another thread held it, and how often.
- Max Held, Max Waited (ns): longest hold and wait among those recorded individually.
- Others Waited (ns): how long other threads waited while this one held the lock. If two threads
  wait at once, both waits count.
- Waited Most For: the thread that held the lock during most of its waits.
- Host, Rank, PID: each is shown only if rows differ in it. TID, Thread.
- With `:by=pair`, one row for each two threads: Time (%) and Total Time (ns) in which Thread waited
  while Held By held the lock, Waits, Max (ns).

## How it is computed
Holds and waits come from the table `gil`: those above the threshold individually, the rest as sums.
Others Waited and Waited Most For use the overlap of a recorded wait with another thread's recorded
hold of the same interpreter. With a filter, only the part in the selected time counts, or the part
inside the thread's own ranges of that name. The largest Others Waited comes first.

## Traps
- A thread that holds the lock nearly always does no harm if no other thread waits: check Others
  Waited.
- Waiting is not the only cost: a thread that gets the lock every 5 ms (the switch interval) is
  delayed by that at each step.
- Long holds are C code that does not release the lock; cpu_hotspots names it.
- For sums of short holds and waits, a filter's part is estimated as if they were evenly spread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.gil import contention
from warplens.analysis.ranges.phases import pieces, said
from warplens.errors import MissingData
from warplens.stats.base import noted, one_of, share
from warplens.stats.places import of_threads

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_AMOUNTS = ("held", "waited", "holds", "waits")
# A row is one wait or hold, or a summary of many short ones (`brief`); of a summary the selected share (`part`) counts.
_SUMS = """
WITH rows AS (SELECT *, state = 'brief' AS brief, state = 'hold' AS hold, state = 'wait' AS wait FROM {relation}),
sums AS (
  SELECT process, thread,
    sum(CASE WHEN brief THEN round(held * part) WHEN hold THEN inside ELSE 0 END)::BIGINT AS held,
    sum(CASE WHEN brief THEN round(waited * part) WHEN wait THEN inside ELSE 0 END)::BIGINT AS waited,
    sum(CASE WHEN brief THEN round(holds * part) WHEN hold THEN 1 ELSE 0 END)::BIGINT AS holds,
    sum(CASE WHEN brief THEN round(waits * part) WHEN wait THEN 1 ELSE 0 END)::BIGINT AS waits,
    max(inside) FILTER (WHERE hold) AS longest_hold, max(inside) FILTER (WHERE wait) AS longest_wait
  FROM rows GROUP BY ALL)
SELECT *, coalesce(100.0 * held / nullif(sum(held) OVER (PARTITION BY process), 0), 0.0) AS share FROM sums ORDER BY process, thread
"""


def table(report: Report, selection: Selection, *, by: str = "thread") -> pa.Table:
    """Return the summary; raises MissingData if nothing about the lock was recorded.

    Args:
        report: the report.
        selection: the part to use.
        by: `thread`, or `pair`: one row for each two threads of which one waited while the other
            held the lock.
    """
    one_of("by", by, ("thread", "pair"))
    rows = report.sql(_SUMS.format(relation=pieces(report, selection, "gil")))
    if not rows.num_rows:
        raise MissingData(f"does not contain Python GIL data{selection.place(report)}.")
    met = contention(report, selection)
    return noted(
        _pairs(report, met) if by == "pair" else _threads(report, rows, met), said(report, selection)
    )


def _threads(report: Report, rows: pa.Table, met: pa.Table) -> pa.Table:
    most = met.group_by("waiter", use_threads=False).aggregate(
        [("holder", "first")]
    )  # the greatest comes first
    caused = met.group_by("holder", use_threads=False).aggregate([("waited", "sum"), ("process", "first")])
    rows = _with_holders(rows, caused)
    thread = rows.column("thread").combine_chunks()
    others = pc.fill_null(
        caused.column("waited_sum").combine_chunks().take(_row(thread, caused, "holder")), 0
    )
    holder = most.column("holder_first").combine_chunks().take(_row(thread, most, "waiter"))
    columns = {
        "Held (%)": rows.column("share"),
        "Held (ns)": rows.column("held"),
        "Holds": rows.column("holds"),
        "Waited (ns)": rows.column("waited"),
        "Waits": rows.column("waits"),
        "Max Held (ns)": rows.column("longest_hold"),
        "Max Waited (ns)": rows.column("longest_wait"),
        "Others Waited (ns)": others,
        "Waited Most For": _name(report, holder),
        **of_threads(report, rows.column("process"), rows.column("thread")),
    }
    order = [("Others Waited (ns)", "descending"), ("Held (ns)", "descending"), ("TID", "ascending")]
    return pa.table(columns).sort_by(order)


def _with_holders(rows: pa.Table, caused: pa.Table) -> pa.Table:
    """Add those who made others wait, but did nothing in the selection themselves."""
    more = caused.filter(
        pc.invert(pc.is_in(caused.column("holder"), value_set=rows.column("thread").combine_chunks()))
    )
    keys = {"process": more.column("process_first"), "thread": more.column("holder")}
    nothing = {
        name: pa.repeat(pa.scalar(0, rows.schema.field(name).type), more.num_rows)
        for name in (*_AMOUNTS, "share")
    }
    unknown = {
        name: pa.nulls(more.num_rows, rows.schema.field(name).type)
        for name in ("longest_hold", "longest_wait")
    }
    return pa.concat_tables([rows, pa.table({**keys, **nothing, **unknown}).select(rows.column_names)])


def _pairs(report: Report, met: pa.Table) -> pa.Table:
    return pa.table(
        {
            "Time (%)": share(met.column("waited")),
            "Total Time (ns)": met.column("waited"),
            "Waits": met.column("waits"),
            "Max (ns)": met.column("longest"),
            **of_threads(report, met.column("process"), met.column("waiter")),
            "Held By": _name(report, met.column("holder").combine_chunks()),
        }
    )


def _row(keys: pa.Array, table: pa.Table, column: str) -> pa.Array:
    return pc.index_in(keys, value_set=table.column(column).combine_chunks())


def _name(report: Report, thread: pa.Array) -> pa.Array:
    """Return `name (tid)` of threads; null for null."""
    known = report.table("threads", ["thread", "tid", "name"]).combine_chunks()
    row = pc.if_else(
        pc.is_null(thread), None, pc.index_in(thread, value_set=known.column("thread").combine_chunks())
    )
    tid = pc.cast(known.column("tid").combine_chunks().take(row), pa.string())
    name = pc.fill_null(known.column("name").combine_chunks().take(row), "thread")
    return pc.binary_join_element_wise(name, pc.binary_join_element_wise("(", tid, ")", ""), " ")
