"""The longest path through a graph, its parts, and its length if some operations took another time."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.critical_path.graph import Graph
from warplens.analysis.critical_path.shares import BEFORE, CATEGORIES, Shares, shares
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report


_BETWEEN = [CATEGORIES.index(name) for name in ("sync return", "full queue")]


@dataclass(frozen=True)
class Path:
    """`all`: what every edge stands for.

    `on`: rows of it that are on the path, in order of time; `before`: ns before the first of them.
    """

    graph: Graph
    all: Shares
    on: Int64Array
    before: int

    @property
    def length(self) -> int:
        """Ns from the first point to the last: what is on the path adds up to it."""
        return self.graph.end - self.graph.begin

    def matching(self, name: str) -> Int64Array:
        """Return the rows of `all` that a name means.

        A category, a kernel (in full or short), a call, an NVTX range; `*` is wild.
        """
        wanted = {place for place, text in enumerate(CATEGORIES) if text.lower() == name.lower()}
        if wanted:
            return np.flatnonzero(np.isin(self.all.category, list(wanted)))
        codes = [place for place, text in enumerate(self.all.names) if _means(name, text)]
        # Time between operations has separate names, which operations never have.
        return np.flatnonzero(np.isin(self.all.name, codes) & ~np.isin(self.all.category, _BETWEEN))

    def what_if(self, rows: Int64Array, factor: float) -> int:
        """Return the length of the path if these rows of `all` took `factor` times as long."""
        return self.graph.ends_with(self.all.scaled(self.graph, rows, factor)) - self.graph.begin

    def slack(self) -> Int64Array:
        """Return for each row of `all` how much later it could end without the whole ending later."""
        late = self.graph.dag.latest(self.graph.end)
        point = self.graph.edges["end"][self.all.edge]
        return np.asarray(late[point] - self.graph.dag.time[point], np.int64)


def path(report: Report, graph: Graph) -> Path:
    """Follow what decided when each point came, from the last one back to the first."""
    edges, point = [], graph.last
    binding, start = graph.dag.binding, graph.edges["start"]
    while (edge := int(binding[point])) != NOTHING:
        edges.append(edge)
        point = int(start[edge])
    every = shares(report, graph)
    on = np.flatnonzero(np.isin(every.edge, np.array(edges, np.int64)))
    on = on[np.argsort(every.start[on], kind="stable")]
    return Path(graph, every, on, before=int(graph.dag.time[point]) - graph.begin)


def _means(name: str, text: str) -> bool:
    short = re.split(r"[<(]", text)[0].rsplit("::", 1)[-1].rsplit(" ", 1)[-1]
    around = text.partition(":")[2]
    return any(
        candidate == name or fnmatch.fnmatchcase(candidate, name) for candidate in (text, short, around)
    )


__all__ = ["BEFORE", "Path", "path"]
