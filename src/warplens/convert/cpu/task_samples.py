"""The table `task_samples`: stacks of asyncio tasks, running and awaiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert import texts
from warplens.convert.cpu.chosen import Chosen, Piece
from warplens.convert.cpu.frames import Frames
from warplens.convert.cpu.samples import weight_of
from warplens.convert.place import Place
from warplens.convert.words import labelled
from warplens.storage import schema

TASKS = (3,)
_RUNNING, _OUTER, _READY = 0x01, 0x20, 0x40
_STATES = {0: "awaiting", 1: "ready", 2: "running"}


class TaskSamples:
    """Makes the rows of `task_samples`."""

    def __init__(self, place: Place, frames: Frames, lanes: TaskLanes) -> None:
        self._place, self._frames, self._lanes = place, frames, lanes
        self._names = texts.Names(place.strings, texts.plain)

    def __call__(self, piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
        """Return a table and its next rows; `columns`: those that all tables have."""
        fields = piece.fields
        flags = fields["flags"]
        outer = (flags & _OUTER) != 0
        count, weight = weight_of(fields)
        (task,) = self._names.columns(fields["name"])
        columns |= {
            "task": task,
            "number": pa.array(fields["cpu"].astype(np.int64)),
            "state": labelled(np.where(flags & _RUNNING, 2, np.where(flags & _READY, 1, 0)), _STATES),
            "doing": _doing(fields["stack"].astype(np.int64), outer, self._place, frames=self._frames),
            "depth": pa.array(self._lanes.at(piece)),
            "outer": pa.array(outer),
            "count": count,
            "weight": weight,
            "stack": self._frames.stacks(fields["stack"]),
        }
        yield "task_samples", schema.build("task_samples", columns)


def _doing(
    stack: Int64Array, outer: npt.NDArray[np.bool_], place: Place, frames: Frames
) -> pa.DictionaryArray:
    """Return the innermost function of each stack, or the tasks that are awaited there."""
    keys, code = np.unique(stack << 1 | outer, return_inverse=True)
    awaited = frames.tasks_below()
    texts: list[str | None] = []
    for node, has_task in zip((keys >> 1).tolist(), (keys & 1).tolist(), strict=True):
        first, *more = awaited.get(node, (0,)) if has_task else (0,)
        name = place.strings.get(first or frames.name_of(node))
        texts.append(f"{name} +{len(more)}" if name and more else name)
    known = {text: number for number, text in enumerate(dict.fromkeys(text for text in texts if text))}
    codes = np.array([known.get(text or "", -1) for text in texts] or [0], np.int32)[code]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(list(known), pa.string()))


class TaskLanes:
    """The lane of each row: a task has one from its first row to its last."""

    def __init__(self, tasks: Int64Array, lane: npt.NDArray[np.int32]) -> None:
        self._tasks, self._lane = tasks, lane

    @classmethod
    def of(cls, chosen: Chosen) -> TaskLanes:
        """Read all records once, for the time in which each task lived."""
        lives: dict[
            int, tuple[int, int]
        ] = {}  # of each task, in order of start: its first start, its last end
        for piece in chosen.pieces():
            key = _task_of(piece)
            # Rows come in order of start, so the first row of a task has its first start; a start
            # from an earlier piece stays.
            tasks, first, code = np.unique(key, return_index=True, return_inverse=True)
            last = np.zeros(len(tasks), np.int64)
            np.maximum.at(last, code.reshape(-1), piece.end)
            for at in np.argsort(first, kind="stable").tolist():
                task, end = int(tasks[at]), int(last[at])
                begin, before = lives.get(task, (int(piece.start[first[at]]), end))
                lives[task] = begin, max(before, end)
        lanes = _lanes(lives)
        every = sorted(lives)
        return cls(np.array(every, np.int64), np.array([lanes[task] for task in every], np.int32))

    def at(self, piece: Piece) -> npt.NDArray[np.int32]:
        """Return the lanes of some rows."""
        lanes: npt.NDArray[np.int32] = self._lane[np.searchsorted(self._tasks, _task_of(piece))]
        return lanes


def _task_of(piece: Piece) -> Int64Array:
    key: Int64Array = piece.thread.astype(np.int64) << 32 | piece.fields["cpu"].astype(np.int64)
    return key


def _lanes(lives: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Return a lane for each task, from when they began and ended; in order of begin."""
    lane: dict[int, int] = {}
    free: dict[int, list[int]] = {}  # of each thread
    taken: dict[int, list[tuple[int, int]]] = {}  # until when, lane
    for task, (start, last) in lives.items():
        open_, unused = taken.setdefault(task >> 32, []), free.setdefault(task >> 32, [])
        while open_ and open_[0][0] <= start:
            heappush(unused, heappop(open_)[1])
        lane[task] = heappop(unused) if unused else len(open_)
        heappush(open_, (last, lane[task]))
    return lane
