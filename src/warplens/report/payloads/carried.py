"""Payloads of events (ranges, marks, samples), by event, as Python values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.report.payloads.tables import decoded

if TYPE_CHECKING:
    from warplens.report.report import Report

T = TypeVar("T")
_AT_ONCE = 1 << 14  # events whose values are in memory together
_ROWS = """
SELECT event, at_end, cut, schema, type, data, json FROM payloads
WHERE event_type = $kind AND event BETWEEN $low AND $high
"""


@dataclass
class Carried:
    """The payloads of one event: given with it, and given when it ended.

    `cut`: one of them was longer in truth.
    """

    begin: list[Any]
    end: list[Any]
    cut: bool = False


def carried(report: Report, kind: str, ids: Int64Array, shape: Callable[[Carried], T]) -> dict[int, T]:
    """Return the payloads of the events `ids` of one kind (`range`, `mark`, `sample`).

    Those without a payload are left out.

    `shape` makes of each what is wanted: the values of many payloads at once would take a lot of memory.
    """
    if not len(ids) or not report.tables["payloads"]:
        return {}
    rows = report.sql(_ROWS, {"kind": kind, "low": int(ids.min()), "high": int(ids.max())})
    rows = rows.filter(pa.array(np.isin(rows.column("event").to_numpy(), ids)))
    # Several payloads of an event stay in the order in which it got them.
    rows = rows.take(pa.array(np.argsort(rows.column("event").to_numpy(), kind="stable")))
    first = np.flatnonzero(np.diff(rows.column("event").to_numpy(), prepend=-1))
    edges = [*first[::_AT_ONCE].tolist(), rows.num_rows]
    payloads: dict[int, T] = {}
    for begin, end in itertools.pairwise(edges):
        part = rows.slice(begin, end - begin)
        columns = [part.column(name).to_pylist() for name in ("event", "at_end", "cut")]
        for event, several in itertools.groupby(
            zip(*columns, decoded(report, part), strict=True), key=itemgetter(0)
        ):
            about = Carried([], [])
            for _, at_end, cut, value in several:
                (about.end if at_end else about.begin).append(value)
                about.cut |= cut
            payloads[event] = shape(about)
    return payloads
