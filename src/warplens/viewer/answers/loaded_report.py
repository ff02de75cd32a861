"""One report in the view: its indexes, its counters and the tree of its rows.

Each is made at its first use.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from warplens.errors import WarplensError
from warplens.report.report import Report
from warplens.timeline.entities import Entities
from warplens.timeline.lanes import Lanes
from warplens.viewer import limits
from warplens.viewer.answers import projecting
from warplens.viewer.answers.memory_limit import check_size
from warplens.viewer.answers.track_nodes import track_nodes

if TYPE_CHECKING:
    from warplens.analysis.cpu.frames import FrameTable
    from warplens.timeline.index import LaneIndex
    from warplens.viewer.answers.counters import Counter

Made = TypeVar("Made")
_log = logging.getLogger(__name__)
FIRST_COUNTER = 1 << 24  # tracks that are counters are numbered from here


class Opened:
    """One report, as it was when it was opened.

    `number`: its place in the view; `generation`: grows when it is opened anew.

    `cache`: where indexes go that have no place in the report; `progress` hears how far their making is. `projecting`: whether rows that
    take long to compute are computed where they are missing.
    """

    def __init__(
        self,
        number: int,
        report: Report,
        *,
        cache: Path | None = None,
        generation: int = 1,
        progress: Callable[[str, float], None] | None = None,
        projecting: bool = True,
    ) -> None:
        self.number, self.report, self.generation, self.first_generation = (
            number,
            report,
            generation,
            generation,
        )
        self.grown: Callable[[], None] = lambda: None  # hears that there is more to see
        self.projector: Callable[[Opened], object] | None = (
            None  # writes what takes long to compute in another process
        )
        self.live = bool(report.snapshots or report.waiting)
        self.growing = False  # rows are being computed that come later
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}  # of tables, by their ids: what was read ahead
        self.cache, self._progress, self._projecting = cache, progress, projecting
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        self._free: deque[Report] = deque()

    @property
    def origin(self) -> int:
        """The origin of times, ns on the report's clock."""
        return self.report.origin

    @property
    def lanes(self) -> Lanes:
        """The tracks of the report. Raises ReportError, also for one that would fill the memory."""

        def made() -> Lanes:
            check_size(self.report)
            return Lanes.open(self.report.stored, self.cache, self._progress)

        return self._once("lanes", made)

    @property
    def every_lane(self) -> Lanes:
        """Those, and behind them the tracks that are computed: NVTX ranges on the GPU.

        Of large reports, these come later.
        """

        def made() -> Lanes:
            if not projecting.has_projection(self.report):
                return self.lanes
            index = projecting.existing(self.report, self.cache)
            if index is None and projecting.takes_long(self.report):
                if self._projecting:
                    self.growing = True
                    threading.Thread(target=self._project, name="projection", daemon=True).start()
                return self.lanes
            return self._with_projection(index)

        return self._once("every lane", made)

    def _with_projection(self, index: LaneIndex | None) -> Lanes:
        if index is None:
            with self.asking() as report:
                index = projecting.made(report, self.cache)
        return self.lanes if index is None else self.lanes.with_more([index])

    def _project(self) -> None:
        """Compute what was left for later, and grow by it: tracks keep their numbers."""
        try:
            if self.projector is None:
                lanes = self._with_projection(None)
            else:  # what another process could not write is not tried again in this one
                self.projector(self)
                index = projecting.existing(self.report, self.cache)
                lanes = self.lanes if index is None else self._with_projection(index)
            rows = self._rows(lanes)
            with self._lock:
                self._made["every lane"], self._made["tree"] = lanes, rows
        except WarplensError as error:  # all else is there
            _log.warning("NVTX ranges on the GPU are not shown: %s", error)
        finally:
            self.growing = False
            self.generation += 1
            self.grown()

    @property
    def entities(self) -> Entities:
        """The processes, threads, tasks and GPUs in it. Raises ReportError as `lanes` does."""

        def made() -> Entities:
            check_size(self.report)
            return Entities.of(self.report)

        return self._once("entities", made)

    @property
    def counters(self) -> dict[int, Counter]:
        """The tracks that are drawn as plots, by number."""

        def made() -> dict[int, Counter]:
            from warplens.viewer.answers.counters import counters

            with self.asking() as report:
                return dict(enumerate(counters(report), FIRST_COUNTER))

        return self._once("counters", made)

    @property
    def tree(self) -> list[dict[str, Any]]:
        """The rows, as `TrackNode` of the page has them."""
        return self._once("tree", lambda: self._rows(self.every_lane))

    @property
    def tree_now(self) -> list[dict[str, Any]] | None:
        """The same, None while nobody has asked for it yet."""
        tree: list[dict[str, Any]] | None = self._made.get("tree")
        return tree

    def _rows(self, lanes: Lanes) -> list[dict[str, Any]]:
        return track_nodes(self.number, self.origin, self.entities, lanes=lanes, counters=self.counters)

    @property
    def warnings(self) -> int:
        """Of the diagnostics, how many tell of a loss: most only say how it was recorded."""

        def made() -> int:
            severities = self.report.table("diagnostics", ["severity"]).column("severity").to_pylist()
            return sum(severity != "info" for severity in severities)

        return self._once("warnings", made)

    @property
    def frames(self) -> FrameTable:
        """The frames of stacks."""

        def made() -> FrameTable:
            from warplens.analysis.cpu.frames import FrameTable

            return FrameTable.of(self.report)

        return self._once("frames", made)

    @contextmanager
    def asking(self) -> Iterator[Report]:
        """Yield the report for one thread alone: SQL and what asks it are for one at a time."""
        try:
            report = self._free.pop()
        except IndexError:
            report = Report(self.report.stored, memory=limits.ASK_MEMORY)
        try:
            yield report
        finally:
            self._free.append(report)

    def close(self) -> None:
        """Close the connections; a request that comes meanwhile opens new ones."""
        while self._free:
            self._free.pop().close()
        self.report.close()

    def _once(self, name: str, make: Callable[[], Made]) -> Made:
        if name not in self._made:
            with self._lock:
                if name not in self._made:
                    self._made[name] = make()
        made: Made = self._made[name]
        return made
