"""The answers for a page without a server: those of `Answers`, for all of the report at several zooms.

Keys are those that `web/src/data/embedded.ts` asks for. Nothing is computed here: each level is a viewport of the index over the whole
report, the finest one of single events; the page only picks a level and cuts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.errors import UsageError, WarplensError
from warplens.viewer.answers.binary import Rects
from warplens.viewer.answers.details import read_ahead
from warplens.viewer.answers.flames import KINDS
from warplens.viewer.answers.plain import encoded

if TYPE_CHECKING:
    from warplens.viewer.answers.answers import Answers
    from warplens.viewer.answers.loaded_report import Opened

MOST_EVENTS = 2_000_000  # of all reports of a page: far more than the few MB that a mail may have
_DETAILED = 1_000  # events that come with all that is known of them
_NAMES = 500  # of which there are statistics
_COARSEST = 2_048  # columns of the whole report
_ZOOM = 4  # from level to level: a view draws at most this number of rectangles per column
_WORTH = 0.6  # a level with more than this share of the events is left out: the finest does for it
_Told = Callable[[str, float], None]


def baked(answers: Answers, told: _Told | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield every answer with its key.

    Raises UsageError if the reports are too long for a page; `told` hears how far it is.
    """
    reports = answers.view.reports
    total = sum(lane.events for opened in reports for lane in opened.every_lane.all)
    if total > MOST_EVENTS:
        raise UsageError(
            f"a single file holds at most {MOST_EVENTS:,} events, but there are {total:,}. {INSTEAD}"
        )
    yield "meta", encoded(answers.meta())
    for opened in reports:
        yield from _report(answers, opened, told or (lambda what, share: None))
    if len(reports) == 2:
        yield "difference", _asked(answers.difference)


INSTEAD = (
    "Who can reach this machine looks at it with `warplens view`, which prints the line for ssh; "
    "`warplens export -t html` writes a page of findings and tables."
)


def _report(answers: Answers, opened: Opened, told: _Told) -> Iterator[tuple[str, bytes]]:
    number = opened.number
    asked: Mapping[str, Callable[[], Any]] = {
        "tracks": partial(answers.tracks, number),
        "findings": partial(answers.findings, number),
        "steps": partial(answers.steps, number),
        "diagnostics": partial(answers.diagnostics, number),
    }
    told("reading the report", 0.0)
    kept = {name: _answer(ask) for name, ask in asked.items()}
    for name, answer in kept.items():
        yield f"{name}/{number}", encoded(answer)
    stats = answers.stat_list(number)
    yield f"stat-list/{number}", encoded(stats)
    for place, stat in enumerate(one["name"] for one in stats if one["available"]):
        told("computing tables", place / len(stats))
        yield f"stat/{number}/{stat}", _asked(partial(answers.stat, number, stat))
    for kind in KINDS:
        yield f"flame/{number}/{kind}", _asked(partial(answers.flame, number, kind))
    levels = _levels(opened)
    begin, end = _span(opened)
    for place, level in enumerate(levels):
        yield f"viewport/{number}/{place}", level.encoded(begin, end, opened.origin)
    plots = list(_plots(answers, opened))
    for place, (_, plot) in enumerate(plots):
        yield f"plots/{number}/{place}", plot
    yield (
        f"levels/{number}",
        encoded({"rects": [level.grain for level in levels], "plots": [grain for grain, _ in plots]}),
    )
    slices = _Slices(opened, levels[-1])
    yield f"alike/{number}", encoded(dict(_alike(answers, slices, told)))
    wanted = list(islice(dict.fromkeys([*_evidence(kept["findings"]), *slices.longest()]), _DETAILED))
    read_ahead(opened, wanted)
    yield f"events/{number}", encoded(dict(_events(answers, number, wanted, told=told)))


def _span(opened: Opened) -> tuple[int, int]:
    """Begin and end of a report from its origin, and of what lies beyond."""
    begin, end = (time - opened.origin for time in opened.report.span)
    lanes = opened.every_lane.all
    return min([begin, *(lane.begin - opened.origin for lane in lanes)]), max(
        [end, *(lane.end - opened.origin for lane in lanes)]
    ) + 1


def _levels(opened: Opened) -> list[Rects]:
    """The whole report from coarse to fine; rectangles of the last one are one event each."""
    begin, end = _span(opened)
    tracks = range(len(opened.every_lane.all))
    events = max(sum(lane.events for lane in opened.every_lane.all), 1)

    def level(width: int) -> Rects:
        return Rects.seen(
            opened.every_lane,
            opened.origin + begin,
            opened.origin + end,
            width,
            tracks,
            2 * MOST_EVENTS + len(tracks),
        )

    levels, width = [], _COARSEST
    while width < end - begin:
        rects = level(width)
        if len(rects.columns["start"]) > _WORTH * events:
            break
        levels.append(rects)
        width *= _ZOOM
    return [*levels, level(end - begin)]


def _plots(answers: Answers, opened: Opened) -> Iterator[tuple[float, bytes]]:
    """All counters, likewise: a request for more columns than there are samples gets the samples."""
    if not opened.counters:
        return
    begin, end = _span(opened)
    samples = max(len(counter.times) for counter in opened.counters.values())
    width = _COARSEST
    while True:
        is_finest = 2 * width >= samples
        yield (
            (0.0 if is_finest else (end - begin) / width),
            answers.plots(opened.number, begin, end, width=width, tracks=list(opened.counters)),
        )
        if is_finest:
            return
        width *= _ZOOM


class _Slices:
    """The events of the finest level: whose each is, how long, and the number of its name there."""

    def __init__(self, opened: Opened, rects: Rects) -> None:
        self.number = opened.number
        runs = rects.lanes
        self._of = (
            np.repeat(np.arange(len(runs)), runs[:, 3].astype(np.int64))
            if len(runs)
            else np.empty(0, np.int64)
        )
        self._lanes = [opened.every_lane.lane(int(track)) for track in runs[:, 0]]
        self._row, self._name = rects.columns["row"], rects.columns["name"]
        self._duration = rects.columns["duration"]

    def ref(self, place: int) -> tuple[str, int, int]:
        """Table, process and row of an event."""
        lane = self._lanes[int(self._of[place])]
        assert lane is not None
        return lane.layer, lane.process, int(self._row[place])

    def longest(self) -> Iterator[tuple[str, int, int]]:
        """All events, the longest of each name first, then by their length."""
        order = np.argsort(-self._duration, kind="stable")
        _, first = np.unique(self._name[order], return_index=True)
        heads = order[np.sort(first)]
        rest = order[~np.isin(order, heads)]
        for place in (*heads.tolist(), *rest.tolist()):
            yield self.ref(place)

    def names(self) -> Iterator[tuple[int, tuple[str, int, int]]]:
        """An event of each name, the most frequent names first."""
        used, first, counts = np.unique(self._name, return_index=True, return_counts=True)
        for place in np.argsort(-counts, kind="stable").tolist():
            yield int(used[place]), self.ref(int(first[place]))


def _alike(answers: Answers, slices: _Slices, told: _Told) -> Iterator[tuple[str, Any]]:
    for place, (name, ref) in enumerate(slices.names()):
        if place == _NAMES:
            return
        told("summing up names", place / _NAMES)
        answer = _answer(partial(answers.alike, slices.number, *ref))
        if "error" not in answer:
            yield str(name), answer


def _events(
    answers: Answers, number: int, wanted: Sequence[tuple[str, int, int]], told: _Told
) -> Iterator[tuple[str, Any]]:
    for place, ref in enumerate(wanted):
        told("collecting details", place / len(wanted))
        answer = _answer(partial(answers.event, number, *ref))
        if "error" not in answer:
            yield "/".join(map(str, ref)), answer


def _evidence(findings: Any) -> Iterator[tuple[str, int, int]]:
    for finding in findings.get("findings", ()):
        for row in finding["evidence"]:
            if row["event"] is not None:
                yield row["event"]["table"], row["event"]["process"], row["event"]["row"]


def _asked(ask: Callable[[], Any]) -> bytes:
    return encoded(_answer(ask))


def _answer(ask: Callable[[], Any]) -> Any:
    """Return an answer, or what the server would have said of its failure."""
    try:
        return ask()
    except WarplensError as error:
        return {"error": str(error).partition("\n")[0]}
