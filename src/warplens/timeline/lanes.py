"""The indexes of all parts of a report as one.

Tracks are numbered through, events are found in all of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.timeline.index import LaneIndex

if TYPE_CHECKING:
    from warplens.report.store import Stored
    from warplens.timeline.index import Cells, Hit, IndexTrack, Viewport

Chosen = Callable[["LaneIndex"], "np.ndarray[Any, Any]"]
_KEY = 32  # ids are process << 32 | row
_ROW = (1 << _KEY) - 1
_EVER = 1 << 62  # ns


@dataclass(frozen=True)
class Lane:
    """A track of the report: `number` in all of it, its `index`, and what it is `own` in that."""

    number: int
    index: LaneIndex
    own: IndexTrack

    @property
    def layer(self) -> str:
        """Layer of the index: mostly a table."""
        return self.own.layer

    @property
    def key(self) -> Mapping[str, Any]:
        """The owner of the track: its process, thread, stream and so on."""
        return self.own.key

    @property
    def process(self) -> int:
        """Whose it is; -1 where it is of none."""
        key = self.own.key.get("process")
        return -1 if key is None else int(key)

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return self.own.lanes

    @property
    def events(self) -> int:
        """The number of events."""
        return self.own.events

    @property
    def busy(self) -> int:
        """Time in which something ran, ns."""
        return int(self.own.busy)

    @property
    def begin(self) -> int:
        """Begin of its first event, ns on the report's clock."""
        return int(self.own.begin)

    @property
    def end(self) -> int:
        """End of its last event, ns on the report's clock."""
        return int(self.own.end)


@dataclass(frozen=True)
class LaneEvent:
    """An event on the timeline: times are ns on the report's clock, `row` the low half of its id."""

    lane: Lane
    depth: int
    start: int
    duration: int
    name: str
    row: int


class Lanes:
    """All tracks of a report that are in indexes."""

    def __init__(
        self,
        indexes: list[LaneIndex],
        bases: list[int],
        every: list[Lane],
        layers: dict[str, list[Lane]],
        having: dict[tuple[str, int], list[LaneIndex]],
    ) -> None:
        """`bases`: the first track of each index; `having`: the indexes that have a layer of a process."""
        self._indexes, self._bases, self.all = indexes, bases, every
        self._layers, self._having = layers, having
        self._base = dict(zip(map(id, indexes), bases, strict=True))

    @classmethod
    def of(cls, indexes: Sequence[LaneIndex]) -> Lanes:
        """Return the tracks of several indexes, numbered through."""
        bases: list[int] = []
        every: list[Lane] = []
        layers: dict[str, list[Lane]] = {}
        having: dict[tuple[str, int], list[LaneIndex]] = {}
        for index in indexes:
            bases.append(len(every))
            every += [Lane(len(every) + place, index, own) for place, own in enumerate(index.tracks)]
        for lane in every:
            layers.setdefault(lane.layer, []).append(lane)
            known = having.setdefault((lane.layer, lane.process), [])
            if not known or known[-1] is not lane.index:
                known.append(lane.index)
        return cls(list(indexes), bases, every, layers=layers, having=having)

    @classmethod
    def open(
        cls, stored: Stored, cache: Path | None, progress: Callable[[str, float], None] | None = None
    ) -> Lanes:
        """Open the indexes of all parts; what is missing or does not fit is built.

        Raises ReportError.
        """
        return cls.of([LaneIndex.open(stored, part, cache, progress) for part in stored.parts])

    def with_more(self, indexes: Sequence[LaneIndex]) -> Lanes:
        """Return these with more behind them: numbers stay as they are."""
        return Lanes.of([*self._indexes, *indexes])

    @property
    def layers(self) -> Collection[str]:
        """The layers that have events."""
        return self._layers.keys()

    def of_layer(self, layer: str) -> Sequence[Lane]:
        """Return the tracks of a layer."""
        return self._layers.get(layer, ())

    def lane(self, number: int) -> Lane | None:
        """Return a track by its number; None where there is none."""
        return self.all[number] if 0 <= number < len(self.all) else None

    def viewports(
        self, begin: int, end: int, width: int, tracks: Collection[int], limit: int
    ) -> list[tuple[int, LaneIndex, Viewport]]:
        """Return the view of some tracks in [begin, end) on `width` columns, by index. With the number of its first track.

        Together at most about `limit` rectangles.
        """
        split = list(self._by_index(tracks))
        every = max(sum(len(numbers) for _, _, numbers in split), 1)
        shares = (max(limit * len(numbers) // every, 1) for _, _, numbers in split)
        return [
            (base, index, index.viewport(begin, end, width, own, share))
            for (index, base, own), share in zip(split, shares, strict=True)
        ]

    def find(
        self,
        names: Chosen,
        begin: int,
        end: int,
        limit: int,
        *,
        backward: bool = False,
        tracks: Collection[int] | None = None,
    ) -> list[LaneEvent]:
        """Return events of the chosen names that begin in [begin, end), in order of time. `backward`: the last ones first."""
        each = []
        for index, base, numbers in self._by_index(range(len(self.all)) if tracks is None else tracks):
            hits = index.find(names(index), begin, end, limit, backward, None if tracks is None else numbers)
            each.append([self._event(index, base, hit) for hit in hits])
        merged = heapq.merge(*each, key=lambda one: -one.start if backward else one.start)
        return list(islice(merged, limit))

    def count(self, names: Chosen, begin: int, end: int, most: int) -> int:
        """Return how many events of the chosen names begin in [begin, end), at most `most` in each part."""
        return sum(
            index.count(names(index), begin, end, most)
            for index, _, _ in self._by_index(range(len(self.all)))
        )

    def locate(self, layer: str, process: int, row: int, start: int | None = None) -> LaneEvent | None:
        """Return where a row of a table lies.

        `start` (ns, the report's clock), where it is known, says where to look first.
        """
        for index in self._having.get((layer, process), ()):
            hit = index.locate(layer, process, row, start)
            if hit is not None:
                return self._event(index, self._base[id(index)], hit)
        return None

    def located(self, layer: str, id_: int, start: int | None = None) -> LaneEvent | None:
        """Return where the row with an id lies."""
        return self.locate(layer, id_ >> _KEY, id_ & _ROW, start=start)

    def at(self, lane: Lane, depth: int, time: int) -> LaneEvent | None:
        """Return what is at a time on one lane of a track."""
        base = self._base[id(lane.index)]
        hit = lane.index.at(lane.number - base, depth, time)
        return None if hit is None else self._event(lane.index, base, hit)

    def next_of(self, layer: str, time: int, end: int) -> LaneEvent | None:
        """Return the first event of a layer that begins at `time` or later."""
        match = self.find(
            every_name, time, end, limit=1, tracks=[lane.number for lane in self.of_layer(layer)]
        )
        return match[0] if match else None

    def named(self, like: LaneEvent, limit: int) -> list[LaneEvent]:
        """Return events of the layer and name of another one."""
        tracks = [lane.number for lane in self.of_layer(like.lane.layer)]

        def names(index: LaneIndex) -> Any:
            chosen = np.asarray(index.names.search(like.name, False))
            return np.array(
                [one for one in chosen.tolist() if index.names.text(one) == like.name], chosen.dtype
            )

        return self.find(names, -_EVER, _EVER, limit=limit, tracks=tracks)

    def sums(self, tracks: Collection[int], begin: int, end: int) -> Iterator[tuple[str, str, int, int, int]]:
        """Yield layer, name, events, time and longest piece (ns) of the slices in [begin, end), by name."""
        for index, _, numbers in self._by_index(tracks):
            parts = index.sums(numbers, begin, end)
            for number in np.flatnonzero(parts.count).tolist():
                sums = int(parts.count[number]), int(parts.total[number]), int(parts.longest[number])
                yield index.names.layer(number), index.names.text(number), *sums

    def search(self, text: str, regex: bool) -> Iterator[tuple[LaneIndex, np.ndarray[Any, Any]]]:
        """Yield for each index the names that a text is in.

        Raises UsageError for a broken expression.
        """
        for index in self._indexes:
            yield index, np.asarray(index.names.search(text, regex))

    def busy(self, tracks: Collection[int], begin: int, end: int) -> dict[int, tuple[float, int]]:
        """Return the busy share (0 to 1) of [begin, end) and the events of each track."""
        load = {}
        for index, base, numbers in self._by_index(tracks):
            shares, events = index.busy(numbers, begin, end)
            load.update(
                {
                    base + own: (share, count)
                    for own, share, count in zip(numbers, shares.tolist(), events.tolist(), strict=True)
                }
            )
        return load

    def deepest(self, tracks: Collection[int], begin: int, end: int) -> dict[int, int]:
        """Return the deepest lane of each track that has something in [begin, end)."""
        deepest: dict[int, int] = {}
        for base, _, view in self.viewports(begin, end, 1, tracks=tracks, limit=1):
            for track, lane in view.runs[:, :2].tolist():
                deepest[base + track] = max(deepest.get(base + track, 0), lane)
        return deepest

    def cells(
        self,
        row: Sequence[Lane],
        window: tuple[int, int],
        columns: int,
        depth: int | None = None,
        *,
        alike: bool = False,
    ) -> Cells:
        """Return what occupied each column of a window (ns) in a row that some tracks of one process make.

        `depth`: one lane of each alone; None: all. Names of one text count as one; `alike`: all do.
        """
        index = row[0].index
        depths = ((lane, range(lane.lanes) if depth is None else (depth,)) for lane in row)
        own = [(lane.number - self._base[id(index)], level) for lane, levels in depths for level in levels]
        texts = index.names.texts
        return index.cells(own, *window, columns, np.zeros_like(texts) if alike else texts)

    def _by_index(self, tracks: Collection[int]) -> Iterator[tuple[LaneIndex, int, list[int]]]:
        wanted = np.unique(np.asarray(list(tracks), np.int64))
        wanted = wanted[(wanted >= 0) & (wanted < len(self.all))]
        place = (
            np.searchsorted(self._bases, wanted, side="right") - 1
        )  # an index without tracks is behind another of its base
        edges = np.flatnonzero(np.diff(place, prepend=-1))
        for own in np.split(np.arange(len(wanted)), edges[1:]) if len(wanted) else ():
            number = int(place[own[0]])
            yield self._indexes[number], self._bases[number], (wanted[own] - self._bases[number]).tolist()

    def _event(self, index: LaneIndex, base: int, hit: Hit) -> LaneEvent:
        return LaneEvent(
            self.all[base + hit.track],
            hit.lane,
            int(hit.start),
            duration=int(hit.duration),
            name=index.names.text(hit.name),
            row=int(hit.row),
        )


def every_name(index: LaneIndex) -> np.ndarray[Any, Any]:
    """Choose all names of an index."""
    return np.arange(len(index.names), dtype=np.uint32)
