"""The dependency graph of a report: built from the recorded times, solved by the native library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.critical_path import collectives, handovers, host, streams, syncs
from warplens.analysis.critical_path import edges as edges_of
from warplens.analysis.critical_path.dag import UNKNOWN, Dag
from warplens.analysis.critical_path.parts import GraphBuilder
from warplens.analysis.critical_path.recorded import (
    RecordedCalls,
    RecordedWork,
    Window,
    read_calls,
    read_work,
)
from warplens.arrays import Int64Array
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection


@dataclass(frozen=True)
class Graph:
    """Points and edges. Things are numbered: threads, then calls, then operations.

    `edges`: columns start, end (points), weight (ns), kind (of `parts.KINDS`), thing (-1: none). `last`: the point of the end.
    """

    edges: dict[str, Int64Array]
    dag: Dag
    last: int
    threads: Int64Array
    processes: Int64Array
    calls: RecordedCalls
    work: RecordedWork

    @property
    def begin(self) -> int:
        """Time of the first point, ns."""
        return int(self.dag.time.min())

    @property
    def end(self) -> int:
        """Time of the last point, ns."""
        return int(self.dag.time[self.last])

    def ends_with(self, weight: Int64Array) -> int:
        """Return when all would be done if edges had other weights."""
        return int(self.dag.times(weight)[self.last])


def build(report: Report, selection: Selection) -> Graph:
    """Build the graph of the selected time.

    MissingData if neither calls of CUDA nor GPU work were recorded.
    """
    window: Window | None = selection.window(report)
    calls = read_calls(report, window)
    work = read_work(report, window, calls)
    if not len(calls) and not len(work):
        raise MissingData(f"does not contain CUDA data{selection.place(report)}.")
    builder = GraphBuilder()
    listed = streams.SyncWaits.read(report, window, calls)
    handed = handovers.find(report, window, calls)
    chains = host.chains(report, window, calls, builder=builder, idle=handovers.idle(handed, calls))
    first_call, first_work = len(chains.threads), len(chains.threads) + len(calls)
    joined, number = collectives.joined(report, window, work)
    items = streams.items(
        report,
        window,
        calls,
        work=work,
        waits=listed,
        joined=joined,
        host=chains,
        builder=builder,
        things=first_work,
    )
    syncs.add(
        report,
        window,
        calls,
        work=work,
        listed=listed,
        items=items,
        host=chains,
        builder=builder,
        things=first_call,
    )
    handovers.add(handed, calls, chains, builder=builder)
    collectives.add(
        joined, number, work, begin=items.operation, end=items.ended, builder=builder, things=first_work
    )
    edges_of.add_begins(calls, work, items, host=chains, builder=builder)
    last = int(builder.add_points(np.array([UNKNOWN]))[0])
    edges_of.add_end(
        window, calls, work, items=items, host=chains, builder=builder, last=last, first_call=first_call
    )
    observed, edges = builder.finish()
    dag = Dag(edges["start"], edges["end"], edges["weight"], observed=observed)
    # The end of a wait may have no time itself, such as an event: the weights of waits need the times of all points.
    edges["weight"] = syncs.weights(edges, dag.time, calls, things=first_call)
    dag.observe(edges["weight"])
    return Graph(edges, dag, last, threads=chains.threads, processes=chains.process, calls=calls, work=work)
