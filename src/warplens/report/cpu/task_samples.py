"""The table `task_samples`: what asyncio tasks were seen to do and to await."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.report import schema, texts
from warplens.report.cpu.chosen import Chosen
from warplens.report.cpu.frames import Frames
from warplens.report.cpu.samples import weight_of
from warplens.report.place import Place
from warplens.report.words import labelled

TASKS = (3,)
_RUNNING, _OUTER, _READY = 0x01, 0x20, 0x40
_STATES = {0: "awaiting", 1: "ready", 2: "running"}


def tasks(chosen: Chosen, place: Place, frames: Frames) -> Iterator[pa.Table]:
    """Return the rows of `task_samples`."""
    names = texts.Names(place.strings, texts.plain)
    lanes = _lanes(chosen)
    for rows, found, columns in chosen.groups():
        flags = found["flags"]
        outer = (flags & _OUTER) != 0
        count, weight = weight_of(found)
        (task,) = names.columns(found["name"])
        columns |= {
            "task": task,
            "number": pa.array(found["cpu"].astype(np.int64)),
            "state": labelled(np.where(flags & _RUNNING, 2, np.where(flags & _READY, 1, 0)), _STATES),
            "doing": _doing(found["stack"].astype(np.int64), outer, place, frames),
            "depth": pa.array(lanes[rows]),
            "outer": pa.array(outer),
            "count": count,
            "weight": weight,
            "stack": frames.stacks(found["stack"]),
        }
        yield schema.build("task_samples", columns)


def _doing(stack: npt.NDArray[np.int64], outer: npt.NDArray[np.bool_], place: Place, frames: Frames) -> pa.DictionaryArray:
    """Return the innermost function of each stack, or the tasks that are awaited there."""
    keys, code = np.unique(stack << 1 | outer, return_inverse=True)
    awaited = frames.tasks_below()
    found: list[str | None] = []
    for node, has_task in zip((keys >> 1).tolist(), (keys & 1).tolist(), strict=True):
        first, *more = awaited.get(node, (0,)) if has_task else (0,)
        name = place.strings.get(first or frames.name_of(node))
        found.append(f"{name} +{len(more)}" if name and more else name)
    known = {text: number for number, text in enumerate(dict.fromkeys(text for text in found if text))}
    codes = np.array([known.get(text or "", -1) for text in found] or [0], np.int32)[code]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(list(known), pa.string()))


def _lanes(chosen: Chosen) -> npt.NDArray[np.int32]:
    """Return the lane of each row: a task has one from its first row to its last."""
    number = np.concatenate([np.empty(0, np.int64), *(found["cpu"].astype(np.int64) for _, found, _ in chosen.groups())])
    key = chosen.thread.astype(np.int64) << 32 | number
    tasks, first, code = np.unique(key, return_index=True, return_inverse=True)  # rows are in order of start
    last = np.zeros(len(tasks), np.int64)
    np.maximum.at(last, code, chosen.ends())
    lane = np.zeros(len(tasks), np.int32)
    free: dict[int, list[int]] = {}  # of each thread
    taken: dict[int, list[tuple[int, int]]] = {}  # until when, lane
    for task in np.argsort(first, kind="stable").tolist():
        thread, start = int(tasks[task]) >> 32, int(chosen.start[first[task]])
        open_, unused = taken.setdefault(thread, []), free.setdefault(thread, [])
        while open_ and open_[0][0] <= start:
            heappush(unused, heappop(open_)[1])
        lane[task] = heappop(unused) if unused else len(open_)
        heappush(open_, (int(last[task]), int(lane[task])))
    return lane[code]
