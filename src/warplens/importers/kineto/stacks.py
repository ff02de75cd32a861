"""Calls of Python functions: the tables `python_calls` and `frames`, and which stack each thread had when."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.arrays import Int32Array, Int64Array
from warplens.importers.kineto.columns import constant, dictionary, ordered, taken, where_known
from warplens.importers.kineto.layout import NULL32
from warplens.importers.rows import numbered
from warplens.storage.writer import RANGES_PER_PROCESS

if TYPE_CHECKING:
    from warplens.importers.kineto.ranges import KinetoRanges
    from warplens.importers.kineto.trace import KinetoTrace

_PLACE = re.compile(r"(?s)(.+)\((\d{1,9})\): (.+)$")  # `torch/nn/modules/module.py(1501): _call_impl`


def split(name: str) -> tuple[str, str | None, int | None]:
    """Return function, file and line of a name of the profiler."""
    match = _PLACE.match(name)
    return (match[3], match[1], min(int(match[2]), 0x7FFFFFFF)) if match else (name, None, None)


@dataclass
class KinetoStacks:
    """The calls of the trace in order, and the frame that each of them is."""

    thread: Int64Array
    start: Int64Array
    end: Int64Array
    frame: Int64Array

    def at(self, thread: Int64Array, start: Int64Array) -> pa.Array:
        """Return the innermost frame of threads at these times, which are in order.

        Null if there is none.
        """
        from warplens.importers.kineto.ranges import enclosing

        frame = enclosing(self.thread, self.start, self.end, ids=self.frame, of=thread, at=start)
        return where_known(frame)


def write(trace: KinetoTrace, ranges: KinetoRanges) -> KinetoStacks:
    """Write `python_calls` and `frames`."""
    identity = trace.identity
    start, end, name = trace.take("python", "start", "end", "name")
    lane = identity.lanes.pop("python")
    start, end, name, lane = taken(ordered(identity.process_of(lane), start, end), start, end, name, lane)
    process, thread = identity.process_of(lane), identity.thread_of(lane)
    ids = numbered(process)
    depth, parent = np.empty(0, np.int32), np.empty(0, np.int64)
    if len(start):
        depth, parent = native.nest(thread, start, end)
    identity.saw(process, thread, start=start, end=end)
    used, which = trace.texts.distinct(name)
    functions = [split(trace.texts[code]) for code in used.tolist()]
    trace.write(
        "python_calls",
        {
            "id": ids,
            "process": process,
            "thread": thread,
            "start": start,
            "end": end,
            "kind": lambda rows: constant("function", len(start[rows])),
            **{part: partial(_part, functions, which, part) for part in ("name", "file", "line")},
            "depth": depth,
            "parent": lambda rows: where_known(np.where(parent[rows] < 0, -1, ids[parent[rows]])),
            "clipped": np.broadcast_to(np.zeros(1, bool), len(start)),
            "range": ranges.around(thread, start),
        },
    )
    frame = _frames(trace, functions, np.ascontiguousarray(process), which=which, depth=depth, parent=parent)
    return KinetoStacks(thread, start, end, frame=frame)


def _part(
    functions: list[tuple[str, str | None, int | None]], which: Int32Array, part: str, rows: slice
) -> pa.Array:
    return _labels(functions, which[rows])[part]


def _labels(places: list[tuple[str, str | None, int | None]], which: Int32Array) -> dict[str, pa.Array]:
    """Return the columns name, file and line."""
    known = [*places, ("", None, None)]
    files = {
        file: number
        for number, file in enumerate(dict.fromkeys(file for _, file, _ in places if file is not None))
    }
    functions = {name: number for number, name in enumerate(dict.fromkeys(name for name, _, _ in known))}
    codes = np.array([-1 if file is None else files[file] for _, file, _ in known], np.int32)
    lines = np.array([NULL32 if line is None else line for _, _, line in known], np.int32)[which]
    return {
        "name": dictionary(
            np.array([functions[name] for name, _, _ in known], np.int32)[which], list(functions)
        ),
        "file": dictionary(codes[which], list(files)),
        "line": pa.array(lines, mask=lines == NULL32),
    }


def _frames(
    trace: KinetoTrace,
    functions_called: list[tuple[str, str | None, int | None]],
    process: Int64Array,
    which: Int32Array,
    depth: Int32Array,
    parent: Int64Array,
) -> Int64Array:
    """Write the tree of all stacks.

    Return the frame of each call, which is that of its function in the frame of its caller.
    """
    frame = np.full(len(which), -1, np.int64)
    made: list[tuple[Int64Array, Int64Array, Int64Array, Int64Array]] = []  # keys, callers, functions, depths
    width = len(functions_called) + 1
    for key in np.unique(process).tolist():
        mine = np.flatnonzero(process == key)
        first, count = key * RANGES_PER_PROCESS, 0
        level = _levels(depth, parent, mine)
        for number in range(int(level.max()) + 1):
            rows = mine[level == number]
            above = np.where(parent[rows] < 0, 0, frame[parent[rows]] - first + 1)
            # The caller's frame and the function in one number: of both there are few.
            calls, place = np.unique(above * width + which[rows], return_inverse=True)
            keys = first + count + np.arange(len(calls))
            frame[rows] = keys[place.reshape(-1)]
            callers = calls // width
            made.append(
                (
                    keys,
                    np.where(callers == 0, -1, callers - 1 + first),
                    calls % width,
                    np.full(len(calls), number),
                )
            )
            count += len(calls)
    if made:
        keys, callers, functions, depths = (np.concatenate(column) for column in zip(*made, strict=True))
        labels = _labels(functions_called, functions.astype(np.int32))
        trace.write(
            "frames",
            {
                "frame": keys,
                "process": keys // RANGES_PER_PROCESS,
                "parent": where_known(callers),
                "depth": depths.astype(np.int32),
                "kind": constant("python", len(keys)),
                "function": labels["name"],
                "file": labels["file"],
                "first_line": labels["line"],
            },
        )
    return frame


def _levels(depth: Int32Array, parent: Int64Array, rows: Int64Array) -> Int64Array:
    """Return how many calls are around each row: its depth, unless calls cross."""
    level = np.zeros(len(parent), np.int64)
    level[rows] = np.where(parent[rows] < 0, 0, depth[rows])
    inner = rows[parent[rows] >= 0]
    while len(wrong := inner[level[inner] != level[parent[inner]] + 1]):
        level[wrong] = level[parent[wrong]] + 1
    return level[rows]
