"""CUDA graphs that a process makes before it uses them: start-up, in which the host is busy and the GPU hardly is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.analysis.once import once
from warplens.arrays import BoolArray
from warplens.rules.host_calls import HostCalls, calls

if TYPE_CHECKING:
    from warplens.report import Report, Selection

FEWEST = 3  # graphs of a server; fewer count where none is made later
_CALLS = "regexp_matches(a.name::VARCHAR, '^(cuda|cu|hip)(StreamBeginCapture|StreamEndCapture|Graph(Instantiate|Launch))')"


@dataclass(frozen=True, eq=False)
class FirstGraphs:
    """The graphs that a process made before it launched graphs more often than it had made them.

    `made`: the calls that instantiated them; `begin`, `end`: ns, from the first call to the end of the last; `capturing`: how long
    graphs were captured and instantiated in between, ns; `launches`: of graphs by the process in all.
    """

    process: int
    made: HostCalls
    begin: int
    end: int
    capturing: int
    launches: int


@once
def first_graphs(report: Report, selection: Selection, fewest: int = FEWEST) -> tuple[FirstGraphs, ...]:
    """Return the first graphs of each process that made at least `fewest`, or all of its graphs, at its start."""
    graph_calls = calls(report, selection, _CALLS)
    series_of = []
    for process in np.unique(graph_calls.process).tolist():
        own = graph_calls.of(graph_calls.process == process)
        launches, makes = _named(own, "Launch"), _named(own, "Instantiate")
        # The first call at which more graphs were launched than made ends the series: make, make,
        # launch, launch, launch ends at the third launch.
        used = np.flatnonzero(np.cumsum(launches) > np.cumsum(makes))
        first = np.arange(len(own)) < (used[0] if len(used) else len(own))
        made, all_made = own.of(first & makes), int(makes.sum())
        if len(made) == 0 or (len(made) < fewest and len(made) < all_made):
            continue
        series = own.of(first & ~launches)
        begin, end = int(series.start[0]), int(series.end.max())
        series_of.append(
            FirstGraphs(
                process,
                made,
                begin,
                end=end,
                capturing=_capturing(series, made),
                launches=int(launches.sum()),
            )
        )
    return tuple(series_of)


def _capturing(series: HostCalls, made: HostCalls) -> int:
    """Return how long graphs were captured and instantiated, ns.

    Each from the begin of the last capture before its end.
    """
    begins = series.start[_named(series, "Begin")]
    before = np.searchsorted(begins, made.start, "right") - 1
    begin = np.where(before >= 0, begins[np.maximum(before, 0)], made.start) if len(begins) else made.start
    return Cover(begin, made.end).total


def _named(some: HostCalls, word: str) -> BoolArray:
    return np.array([word in name for name in some.name], bool)
