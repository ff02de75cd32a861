"""Names each edge of a graph: its kernel, its call, or the NVTX range of the host's own time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.critical_path.graph import Graph
from warplens.analysis.critical_path.parts import BEGIN, CALL, CPU, LAUNCH, QUEUE, SYNC, WORK
from warplens.analysis.critical_path.recorded import OPERATIONS, coded, numbers
from warplens.analysis.gpu.kernel_classes import classes
from warplens.analysis.step_functions import NOTHING, StepFunction
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

CATEGORIES = (
    "CPU",
    "CUDA API",
    "kernel",
    "communication",
    "memcpy",
    "memset",
    "graph",
    "launch latency",
    "sync return",
    "full queue",
    "stream gap",
    "before",
)
_CPU, _API, _KERNEL, _COMMUNICATION, _MEMCPY, _MEMSET, _GRAPH, _LATENCY, _RETURN, _QUEUE, _GAP, BEFORE = (
    range(len(CATEGORIES))
)
_OF_TABLE = np.array(
    [
        {"kernels": _KERNEL, "memcpys": _MEMCPY, "memsets": _MEMSET, "graphs": _GRAPH}[table]
        for table in OPERATIONS
    ]
)
NO_RANGE = "[no range]"


@dataclass(frozen=True)
class Shares:
    """A row for an edge, or a stretch of one.

    `edge`, `start` and `length` (ns, as recorded), `weight` (ns that scale).

    `category` (of CATEGORIES), `name` (of `names`), `process`, `thread`, `device`, `stream` (NOTHING: none), `thing` say what it is. Those
    of an edge lie one after the other and fill the time between its points.
    """

    edge: Int64Array
    start: Int64Array
    length: Int64Array
    weight: Int64Array
    category: Int64Array
    name: Int64Array
    process: Int64Array
    thread: Int64Array
    device: Int64Array
    stream: Int64Array
    thing: Int64Array
    names: list[str]

    def take(self, rows: Int64Array) -> Shares:
        """Return some of the rows."""
        return Shares(
            **{name: values if name == "names" else values[rows] for name, values in vars(self).items()}
        )

    def scaled(self, graph: Graph, rows: Int64Array, factor: float) -> Int64Array:
        """Return the weights of edges if what these rows stand for took `factor` times as long."""
        change = np.zeros(len(graph.edges["weight"]))
        np.add.at(change, self.edge[rows], self.weight[rows] * (factor - 1))
        return np.maximum(graph.edges["weight"] + np.rint(change).astype(np.int64), 0)


def shares(report: Report, graph: Graph) -> Shares:
    """Name all edges of a graph that take time."""
    names = [*graph.calls.names, *graph.work.names]
    kind, time = graph.edges["kind"], graph.dag.time
    start, end = time[graph.edges["start"]], time[graph.edges["end"]]
    counts = (end > start) & (end <= graph.end)
    cpu, rest = np.flatnonzero((kind == CPU) & counts), np.flatnonzero((kind != CPU) & counts)
    ranges, range_names = _ranges(report, graph)
    parts = [
        _host(graph, cpu, start=start, end=end, ranges=ranges, first_name=len(names)),
        _others(graph, rest, start=start, end=end, first_name=len(names)),
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    latency = [*range_names, NO_RANGE, "[not known]", "[launch latency]", "[between operations]"]
    columns["name"] = np.where(
        columns["name"] < 0, len(names) + len(latency) + columns["name"], columns["name"]
    )
    return Shares(**columns, names=[*names, *latency])


def _host(
    graph: Graph,
    edges: Int64Array,
    start: Int64Array,
    end: Int64Array,
    ranges: dict[str, Int64Array],
    first_name: int,
) -> dict[str, Int64Array]:
    """Cut what threads did by themselves where their innermost range changes."""
    cut: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array]] = []
    thing = graph.edges["thing"][edges]
    for place in np.unique(thing).tolist():
        own = edges[thing == place]
        own = own[np.argsort(start[own], kind="stable")]
        mine = ranges["thread"] == graph.threads[place]
        pieces = StepFunction.nested(ranges["start"][mine], ranges["end"][mine], ranges["name"][mine])
        # Edges of a thread may lie in one another: a cut belongs to every edge around it.
        # The changes of the innermost range that lie inside an edge: pieces.time[first:last]. An edge with n changes gives n + 1 shares.
        first, last = (
            np.searchsorted(pieces.time, start[own], side="right"),
            np.searchsorted(pieces.time, end[own], side="left"),
        )
        cuts = np.maximum(last - first, 0)
        edge = np.repeat(own, cuts + 1)
        nth = np.arange(len(edge)) - np.repeat(np.cumsum(cuts + 1) - (cuts + 1), cuts + 1)
        begin = np.where(
            nth == 0,
            start[edge],
            pieces.time[np.minimum(np.repeat(first, cuts + 1) + nth - 1, len(pieces.time) - 1)]
            if len(pieces.time)
            else 0,
        )
        ends = np.append(begin[1:], 0)
        ends = np.where(nth == np.repeat(cuts, cuts + 1), end[edge], ends)
        cut.append((edge, begin, ends - begin, pieces.at(begin)))
    edge, begin, length, name = (
        (np.concatenate([np.empty(0, np.int64), *parts]) for parts in zip(*cut, strict=True))
        if cut
        else [np.empty(0, np.int64)] * 4
    )
    thing = graph.edges["thing"][edge]
    nothing = np.full(len(edge), NOTHING)
    return {
        "edge": edge,
        "start": begin,
        "length": length,
        "weight": np.minimum(length, graph.edges["weight"][edge]),
        "category": np.full(len(edge), _CPU),
        "name": np.where(name == NOTHING, -4, first_name + name),
        "process": graph.processes[thing] if len(edge) else nothing,
        "thread": graph.threads[thing] if len(edge) else nothing,
        "device": nothing,
        "stream": nothing,
        "thing": nothing,
    }


def _others(
    graph: Graph, edges: Int64Array, start: Int64Array, end: Int64Array, first_name: int
) -> dict[str, Int64Array]:
    """Name calls, operations, and what lies between them."""
    calls, work = graph.calls, graph.work
    kind, thing = graph.edges["kind"][edges], graph.edges["thing"][edges]
    call = np.isin(kind, (CALL, SYNC, QUEUE))
    row = thing - len(graph.threads) - np.where(call, 0, len(calls))
    known = thing != NOTHING
    is_call, is_work = call & known, ~call & known
    result = {
        name: np.full(len(edges), NOTHING) for name in ("name", "process", "thread", "device", "stream")
    }
    of = _OF_TABLE[work.columns["table"]]
    kinds = (
        np.array(classes(pa.array(work.names, pa.string())).to_pylist(), object) == "communication"
        if work.names
        else np.zeros(0, bool)
    )
    of = np.where((of == _KERNEL) & kinds[work.columns["name"]], _COMMUNICATION, of) if len(work) else of
    category = np.full(len(edges), _GAP)
    for rows, source, columns in (
        (is_call, calls.columns, ("process", "thread", "name")),
        (is_work, work.columns, ("process", "device", "stream", "name")),
    ):
        for name in columns:
            result[name][rows] = source[name][row[rows]] + (
                len(calls.names) if name == "name" and rows is is_work else 0
            )
    category[kind == CALL], category[kind == SYNC], category[kind == QUEUE] = _API, _RETURN, _QUEUE
    category[kind == WORK] = of[row[kind == WORK]]
    category[kind == LAUNCH], category[kind == BEGIN] = _LATENCY, BEFORE
    result["name"] = np.select(
        [category == BEFORE, category == _LATENCY, category == _GAP], [-3, -2, -1], result["name"]
    )
    return {
        "edge": edges,
        "start": start[edges],
        "length": (end - start)[edges],
        "weight": graph.edges["weight"][edges],
        "category": category,
        **result,
        "thing": thing,
    }


def _ranges(report: Report, graph: Graph) -> tuple[dict[str, Int64Array], list[str]]:
    """Push/pop ranges of the graph's threads in its time; names as `domain:name`, each once."""
    rows = report.sql(
        f"""SELECT thread, "start", "end", coalesce(domain, '') || ':' || coalesce(message, '') AS name FROM nvtx_ranges
            WHERE style = 'PushPop' AND task IS NULL AND thread IN (SELECT unnest($threads))
            AND "start" < {graph.end} AND "end" > {graph.begin} ORDER BY "start" """,
        {"threads": graph.threads.tolist()},
    )
    columns = {name: numbers(rows, name) for name in ("thread", "start", "end")}
    columns["name"], names = coded(rows.column("name"))
    return columns, names
