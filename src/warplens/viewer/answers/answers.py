"""The requests of the page, a method for each. Answers are plain values or bytes.

Who may ask, and how long it may take, is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warplens.errors import MissingData, UsageError
from warplens.viewer import limits
from warplens.viewer.answers import binary
from warplens.viewer.answers.asking import SqlProcesses
from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from warplens.viewer.answers.loaded_report import Opened

_FEATURES = {
    "kernels": ("kernels",),
    "memory": ("gpu_memory", "tensor_memory"),
    "metrics": ("gpu_metrics",),
    "nvtx": ("nvtx_ranges",),
    "python": ("python_calls",),
    "samples": ("samples",),
    "wall": ("samples",),
    "tasks": ("task_samples",),
    "ops": ("ops",),
    "collectives": ("collectives",),
}


class Outdated(Exception):
    """The page asks for tracks of a report that was opened again in the meantime."""


@dataclass
class View:
    """The opened reports by their number, and the comparison of two of them (None: no comparison)."""

    title: str
    reports: list[Opened]
    compare: Callable[[Sequence[Opened]], dict[str, Any]] | None = None

    def report(self, number: int) -> Opened:
        """Return one report. Raises MissingData if there is none of that number."""
        if not 0 <= number < len(self.reports):
            raise MissingData(f"this view has no report {number}")
        return self.reports[number]


class Answers:
    """The answers of a view. Times in questions and answers are ns from the report's origin."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._processes = SqlProcesses()

    def close(self) -> None:
        """End the processes that SQL runs in."""
        self._processes.close()

    def meta(self) -> dict[str, Any]:
        """`Meta`: the reports, and what they have data for."""
        counts = [opened.report.tables for opened in self.view.reports]
        features = [
            name
            for name, tables in _FEATURES.items()
            if any(own.get(table) for own in counts for table in tables)
        ]
        return {
            "version": 1,
            "title": self.view.title,
            "reports": [_report(opened) for opened in self.view.reports],
            "features": features,
        }

    def tracks(self, report: int) -> list[dict[str, Any]]:
        """The rows of a report, as a tree of `TrackNode`."""
        return self.view.report(report).tree

    def viewport(
        self,
        report: int,
        begin: float,
        end: float,
        width: int,
        tracks: Collection[int],
        limit: int,
        generation: int = 0,
    ) -> bytes:
        """The rectangles of some tracks in [begin, end): `Rects`."""
        opened = self._current(report, generation)
        first, last = opened.origin + math.floor(begin), opened.origin + math.ceil(end)
        rects = binary.Rects.seen(
            opened.every_lane, first, last, width, tracks, min(limit, limits.RECTANGLES)
        )
        return rects.encoded(begin, end, opened.origin)

    def plots(
        self,
        report: int,
        begin: float,
        end: float,
        width: int,
        tracks: Collection[int],
        limit: int = 0,
        generation: int = 0,
    ) -> bytes:
        """The values of some counters in [begin, end): `Plot`s."""
        opened = self._current(report, generation)
        first, last = opened.origin + math.floor(begin), opened.origin + math.ceil(end)
        by_track = opened.counters
        series = [
            (track, by_track[track].plot(first, last, width))
            for track in sorted(set(tracks))
            if track in by_track
        ]
        return binary.plots(series, begin, end, origin=opened.origin)

    def event(self, report: int, table: str, process: int, row: int) -> dict[str, Any]:
        """`EventDetails` of an event."""
        from warplens.viewer.answers.details import event

        return event(self.view.report(report), table, process, row=row)

    def alike(self, report: int, table: str, process: int, row: int) -> dict[str, Any]:
        """`Alike`: all events with the name of one."""
        from warplens.viewer.answers.alike import alike

        return alike(self.view.report(report), table, process, row=row)

    def search(self, report: int, text: str, regex: bool, around: float, limit: int) -> dict[str, Any]:
        """`SearchAnswer`: the names with a text in them, and their events around a time."""
        from warplens.viewer.answers.searching import search

        return search(self.view.report(report), text, regex, around=around, limit=min(limit, limits.EVENTS))

    def findings(self, report: int) -> dict[str, Any]:
        """`Findings` of the rules."""
        from warplens.viewer.answers.statistics import findings

        return findings(self.view.report(report))

    def stat_list(self, report: int) -> list[dict[str, Any]]:
        """`StatInfo` of all stats."""
        from warplens.viewer.answers.statistics import stat_list

        return stat_list(self.view.report(report))

    def stat(
        self, report: int, name: str, begin: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """One stat, over all of the report or a part: `Table`."""
        from warplens.viewer.answers.statistics import stat

        return stat(self.view.report(report), name, begin=begin, end=end)

    def selected(self, report: int, begin: int, end: int, tracks: Collection[int]) -> dict[str, Any]:
        """`Selected`: what happened in a part of time."""
        from warplens.viewer.answers.selecting import selected

        return selected(self.view.report(report), begin, end, tracks=tracks)

    def flame(
        self, report: int, kind: str, begin: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """`Flame` of a kind, over all of the report or a part."""
        from warplens.viewer.answers.flames import flame
        from warplens.viewer.answers.statistics import selection

        opened = self.view.report(report)
        return flame(opened, kind, selection(opened, begin, end))

    def source(
        self, report: int, file: str = "", begin: int | None = None, end: int | None = None
    ) -> dict[str, Any]:
        """`SourceLines` of a file, by default the hottest, over all of the report or a part."""
        from warplens.viewer.answers.sources import lines_of
        from warplens.viewer.answers.statistics import selection

        opened = self.view.report(report)
        return lines_of(opened, file, selection(opened, begin, end))

    def steps(self, report: int, name: str = "") -> dict[str, Any]:
        """`Steps` of a training; with `name`, ranges called so are its steps."""
        from warplens.viewer.answers.statistics import steps

        return steps(self.view.report(report), name)

    def diagnostics(self, report: int) -> dict[str, Any]:
        """Losses, guesses and missing records: `Table`."""
        from warplens.viewer.answers.statistics import diagnostics

        return diagnostics(self.view.report(report))

    def sql(self, report: int, text: str) -> dict[str, Any]:
        """The answer to one SELECT: `Table`. Raises QueryError."""
        from warplens.viewer.answers.tables import sql_links

        opened = self.view.report(report)
        if not text.strip():
            raise UsageError("the query is empty: write a SELECT")
        answer = self._processes.ask(opened, text)
        table: dict[str, Any] = answer["table"]
        links = sql_links(opened, text, answer["places"])
        return {**table, "links": links} if any(links) else table

    def difference(self) -> dict[str, Any] | None:
        """`Difference` of the two reports; null if there are not two."""
        if self.view.compare is None or len(self.view.reports) != 2:
            return None
        return self.view.compare(self.view.reports)

    def at(self, report: int, table: str, time: float) -> dict[str, Any] | None:
        """`Located`: the first event of a table that begins at a time or later."""
        from warplens.viewer.answers.event_address import located

        opened = self.view.report(report)
        event = opened.every_lane.next_of(table, opened.origin + math.floor(time), limits.TIME)
        return None if event is None else located(opened, event)

    def _current(self, report: int, generation: int) -> Opened:
        opened = self.view.report(report)
        if generation and generation < opened.first_generation:
            raise Outdated("the report was reopened during the request")
        return opened


def _report(opened: Opened) -> dict[str, Any]:
    report = opened.report
    first = report.manifests[0]
    begin, end = report.span
    return {
        "report": opened.number,
        "name": cut(report.name),
        "command": cut(" ".join(first.command)),
        "hosts": list(dict.fromkeys(cut(manifest.host) for manifest in report.manifests)),
        "begin": begin - opened.origin,
        "end": end - opened.origin,
        "events": sum(lane.events for lane in opened.lanes.all),
        "realtime": opened.origin + first.realtime_offset if first.realtime_offset else None,
        "generation": opened.generation,
        "live": opened.live,
        "growing": opened.growing,
        "diagnostics": report.tables["diagnostics"],
        "warnings": opened.warnings,
    }
