"""Collective operations of several ranks, put together: which kernels belong to one, and who came last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from warplens.errors import MissingData

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

Member = tuple[int, int | None]
"""Process and device; the device is None where the framework says what belongs together."""

_AT_ONCE = 0.9  # share of the operations that must have been in progress at once on all ranks, else they were not put together rightly
# A member is a process, or one GPU of a process. Operations are put together by their number in the group, else by counting them.
# Without numbers, the n-th call of an operation on one member belongs to the n-th on every other.
_BY_GROUP = """SELECT process, NULL::INTEGER AS device, kernel AS id, "start", "end", name, coalesce("group", '') AS ring, {number} AS n
           FROM collectives WHERE kernel IS NOT NULL AND name NOT IN ('send', 'recv')"""
_NUMBERS = {
    True: "sequence",
    False: """row_number() OVER (PARTITION BY process, "group", name ORDER BY "start")""",
}
_COUNTED = """SELECT process, device, id, "start", "end", name, '' AS ring,
                     row_number() OVER (PARTITION BY process, device, name ORDER BY "start") AS n
              FROM kernels WHERE (name ILIKE 'nccl%' OR name ILIKE 'rccl%') AND name NOT ILIKE '%sendrecv%'"""


def _source(report: Report) -> tuple[str, bool]:
    """Return the SQL query of all members' operations, and whether they are put together by their numbers."""
    counts = report.sql("""SELECT count(DISTINCT process) > 1 AS several, count(sequence) = count(*) AS numbered
                          FROM collectives WHERE kernel IS NOT NULL""").to_pylist()[0]
    numbered = bool(counts["several"] and counts["numbered"])
    return _BY_GROUP.format(number=_NUMBERS[numbered]) if counts["several"] else _COUNTED, numbered


def together(report: Report, selection: Selection) -> pa.Table:
    """Return a row for each collective.

    Name, members, first, last and average begin, the member that came last, and all kernels' ids.
    """
    window = selection.window(report)
    source, numbered = _source(report)
    rows = report.sql(
        f"""WITH c AS ({source})
            SELECT name, count(*) AS members, min("start") AS first, max("start") AS last,
                   avg("start" - {report.origin}) AS average,
                   min("end") AS ended, max("end") AS done,
                   arg_max(process, "start") AS process, arg_max(device, "start") AS device, arg_max(id, "start") AS id, list(id) AS kernels
            FROM c GROUP BY name, ring, n ORDER BY first"""
    )
    if window is not None:  # only now: the ranks count alike
        rows = rows.filter(
            pc.and_(pc.less(rows.column("first"), window[1]), pc.greater(rows.column("done"), window[0]))
        )
    members = np.asarray(rows.column("members").to_numpy())
    if not len(members) or members.max() < 2:
        raise MissingData(f"does not contain collectives of several ranks{selection.place(report)}.")
    whole = members > 1 if numbered else members == members.max()
    rows = rows.filter(whole)
    last, ended = (np.asarray(rows.column(name).to_numpy()) for name in ("last", "ended"))
    if not numbered and np.mean(last <= ended) < _AT_ONCE:
        raise MissingData(f"does not match collectives of different ranks{selection.place(report)}.")
    return rows.filter(last <= ended)


def keys_of(collectives: pa.Table) -> list[Member]:
    """Return the process and device of each row."""
    return list(
        zip(collectives.column("process").to_pylist(), collectives.column("device").to_pylist(), strict=True)
    )


def rank_names(report: Report, members: Iterable[Member]) -> dict[Member, str]:
    """Name the members: by rank, else by GPU and process."""
    ranks = {
        row["process"]: row["rank"] for row in report.sql("SELECT process, rank FROM processes").to_pylist()
    }
    keys = sorted(set(members), key=str)
    order = {process: number for number, process in enumerate(sorted({process for process, _ in keys}), 1)}
    names = {}
    for process, device in keys:
        rank = ranks.get(process)
        owner = f"process {order[process]}" if rank is None else f"rank {rank}"
        several = sum(other == process for other, _ in keys) > 1
        names[process, device] = f"GPU {device} of {owner}" if several else owner
    return names
