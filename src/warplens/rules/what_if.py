"""Prices a finding by the critical path: computes the run again without the time that the fix removes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.critical_path import Path, build, path
from warplens.analysis.critical_path.parts import SYNC
from warplens.analysis.critical_path.shares import CATEGORIES
from warplens.errors import MissingData, ReportError
from warplens.rules.base import Without

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_MOST = 1 << 21  # calls and operations: a graph takes about 500 bytes for each
_TABLES = ("cuda_api", "kernels", "memcpys", "memsets", "graphs")
_HOST = tuple(CATEGORIES.index(name) for name in ("CPU", "CUDA API"))
_KNOWN = (
    0.9  # of the time that a fix removes: a thread is in the graph from its first call or range to the last
)
_NEVER = -(1 << 50)  # ns: an edge that asks for this decides nothing


class WhatIf:
    """Works out what runs without a cost would take; the graph of the selection is built with the first question.

    `lacks`: why it cannot; empty if it can.
    """

    def __init__(self, report: Report, selection: Selection) -> None:
        self._report, self._selection = report, selection
        self.lacks = ""
        if not report.tables["cuda_api"]:
            self.lacks = "the report has no calls of CUDA"
        elif sum(report.tables[name] for name in _TABLES) > _MOST:
            self.lacks = "the report is too large for a dependency graph"

    def saving(self, without: Without) -> int | str:
        """Return by how much the selected time would be shorter, ns; if the graph cannot say, why in words."""
        if self.lacks or self._path is None:
            return self.lacks
        graph = self._path.graph
        weight = graph.edges["weight"].copy()
        if without.threads:
            shares = self._path.all
            own = np.isin(shares.thread, list(without.threads)) & np.isin(shares.category, _HOST)
            rows = np.flatnonzero(own)
            inside = without.time.within(shares.start[rows], shares.start[rows] + shares.length[rows])
            if int(inside.sum()) < _KNOWN * without.time.total:
                return "the dependency graph does not cover these threads all the time"
            np.subtract.at(weight, shares.edge[rows], np.minimum(inside, shares.weight[rows]))
            weight = np.maximum(weight, 0)
        if len(without.waits):
            call = graph.calls.find(without.waits)
            things = len(graph.threads) + call[call >= 0]
            ended = (graph.edges["kind"] == SYNC) & np.isin(graph.edges["thing"], things)
            weight[ended] = _NEVER
        return max(graph.end - graph.ends_with(weight), 0)

    @cached_property
    def _path(self) -> Path | None:
        try:
            graph = build(self._report, self._selection)
        except (MissingData, ReportError) as error:
            self.lacks = f"the dependency graph cannot be made: {error}".rstrip(".")
            return None
        launched = graph.calls.find(graph.work.columns["api"]) >= 0
        if launched.sum() < _KNOWN * len(launched):
            self.lacks = "the report lacks the launches of much of the GPU's work"
            return None
        return path(self._report, graph)
