"""Sums up a critical path by kind, by place, or by the NVTX range around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.critical_path.path import Path
from warplens.analysis.critical_path.recorded import grouped
from warplens.analysis.critical_path.shares import CATEGORIES
from warplens.analysis.step_functions import NOTHING, innermost
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

KEYS = {
    "name": ("category", "name", "process", "device"),
    "kind": ("category", "process"),
    "place": ("process", "thread", "device", "stream"),
    "range": ("range", "process"),
}
_NO_RANGE = "[no range]"


def summed(report: Report, path: Path, by: str, *, gains: int) -> pa.Table:
    """Return a row for each thing on the path, most time first.

    Columns: those of KEYS[by] (texts, numbers; null: none), time (ns on the path), pieces, all (ns, on the path or not), slack (the least
    slack of those off the path, ns; null: there are none), gain (by how much the whole would be shorter if it took no time; of the first
    `gains` rows, null for the others).
    """
    shares = path.all
    columns = {
        "category": shares.category,
        "name": shares.name,
        "process": shares.process,
        "thread": shares.thread,
    }
    columns |= {"device": shares.device, "stream": shares.stream}
    if by == "range":
        columns["range"], names = around(report, path)
    group, number = grouped([columns[name] for name in KEYS[by]])
    groups = len(group[0])
    on = np.zeros(len(number), bool)
    on[path.on] = True
    slack = path.slack()
    time, every, pieces = (np.zeros(groups, np.int64) for _ in range(3))
    np.add.at(time, number[on], shares.length[on])
    # What lies between things is as long as it has to be; how much longer others waited there is not its own.
    np.add.at(
        every, number, np.where(shares.category > CATEGORIES.index("graph"), shares.weight, shares.length)
    )
    np.add.at(pieces, number[on], 1)
    least = np.full(groups, np.iinfo(np.int64).max)
    np.minimum.at(least, number[~on], slack[~on])
    shown = np.flatnonzero(time > 0)
    shown = shown[np.argsort(-time[shown], kind="stable")]
    gain = [
        path.length - path.what_if(np.flatnonzero(number == place), 0.0) for place in shown[:gains].tolist()
    ]
    columns_of = {}
    for name, values in zip(KEYS[by], group, strict=True):
        codes = values[shown]
        texts = {
            "category": list(CATEGORIES),
            "name": shares.names,
            "range": names if by == "range" else [],
        }.get(name)
        columns_of[name] = (
            pa.array(codes, mask=codes == NOTHING)
            if texts is None
            else pa.array([texts[code] for code in codes.tolist()])
        )
    columns_of |= {"time": time[shown], "pieces": pieces[shown], "all": every[shown]}
    columns_of["slack"] = pa.array(least[shown], mask=least[shown] == np.iinfo(np.int64).max)
    columns_of["gain"] = pa.array([*gain, *[None] * (len(shown) - len(gain))], pa.int64())
    return pa.table(columns_of)


def around(report: Report, path: Path) -> tuple[Int64Array, list[str]]:
    """Return for each row of `path.all` the push/pop range around it, by number, and their names.

    GPU work has that of its launch.
    """
    shares, graph = path.all, path.graph
    first_work = len(graph.threads) + len(graph.calls)
    launch = graph.calls.find(graph.work.columns["api"])
    call = np.full(len(shares.thing), NOTHING)
    known = (shares.thing >= len(graph.threads)) & (shares.thing < first_work)
    call[known] = shares.thing[known] - len(graph.threads)
    work = shares.thing >= first_work
    call[work] = launch[shares.thing[work] - first_work]
    own = shares.category == CATEGORIES.index("CPU")
    thread, time = shares.thread.copy(), shares.start.copy()
    if len(graph.calls):
        thread = np.where(own, thread, np.where(call >= 0, graph.calls.columns["thread"][call], NOTHING))
        time = np.where(own, time, np.where(call >= 0, graph.calls.columns["start"][call], 0))
    rows = report.sql(
        f"""SELECT thread, "start", "end", coalesce(domain, '') || ':' || coalesce(message, '') AS name FROM nvtx_ranges
            WHERE style = 'PushPop' AND task IS NULL AND thread IN (SELECT unnest($threads)) AND "start" < {graph.end} ORDER BY "start" """,
        {"threads": graph.threads.tolist()},
    )
    columns = [np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("thread", "start", "end")]
    place = innermost(columns[0], columns[1], columns[2], at_thread=thread, at_time=time)
    coded = rows.column("name").combine_chunks().dictionary_encode()
    names = [*coded.dictionary.to_pylist(), _NO_RANGE]
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
    return (
        np.where(place >= 0, codes[place], len(names) - 1)
        if len(codes)
        else np.full(len(place), len(names) - 1)
    ), names
