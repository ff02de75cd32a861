"""Samples of CPUs (PerfSample) with their stacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.importers.nsys.calls import enclosing
from warplens.importers.perfetto import wire
from warplens.importers.perfetto.slices import PerfettoContext
from warplens.importers.rows import numbered

_INTERNED, _CLEARED, _SAMPLE = 12, 13, 66
_FUNCTIONS, _FRAMES, _STACKS, _BUILDS, _PATHS, _MAPPINGS = 5, 6, 7, 16, 17, 19
_USUAL = 1_000_000  # ns between samples, where the trace does not tell


@dataclass
class _Sequence:
    texts: dict[tuple[int, int], str] = field(default_factory=dict)
    mappings: dict[int, dict[int, list[wire.Value]]] = field(default_factory=dict)
    frames: dict[int, dict[int, list[wire.Value]]] = field(default_factory=dict)
    stacks: dict[int, list[int]] = field(default_factory=dict)
    known: dict[int, int | None] = field(default_factory=dict)


def write(context: PerfettoContext) -> None:
    """Write `samples` and `frames`."""
    sequences: dict[int, _Sequence] = {}
    tree = _FrameRows()
    samples: list[tuple[int, int, int, int | None]] = []
    broken = without = 0
    for packet in context.trace.others(_INTERNED, _CLEARED, _SAMPLE):
        state = sequences.setdefault(packet.sequence, _Sequence())
        try:
            if packet.field == _CLEARED:
                sequences[packet.sequence] = _Sequence()
            elif packet.field == _INTERNED:
                _intern(state, wire.message(packet.data))
            else:
                message = wire.message(packet.data)
                if 4 not in message:
                    without += 1
                    continue
                stack = _stack(state, tree, wire.whole(message, 4))
                samples.append(
                    (
                        context.clocks.at(packet.time, packet.clock),
                        wire.whole(message, 2),
                        wire.whole(message, 3),
                        stack,
                    )
                )
        except ValueError:
            broken += 1
    context.tally.say("warning", "broken", "samples that are not messages were left out", broken)
    context.tally.say("info", "no-stack", "samples without a stack were left out", without)
    if not samples:
        return
    process = np.array([context.places.process_of(pid) for _, pid, _, _ in samples], np.int64)
    thread = np.array([context.places.thread_of(pid, tid) for _, pid, tid, _ in samples], np.int64)
    start = np.array([time for time, *_ in samples], np.int64)
    order = np.lexsort((start, process))
    process, thread, start = process[order], thread[order], start[order]
    stacks = np.array([-1 if entry[3] is None else entry[3] for entry in samples], np.int64)[order]
    step = _interval(thread, start)
    order = np.lexsort((start, thread))
    # consecutive ticks with the same stack are one row
    same = (
        (np.diff(thread[order]) == 0)
        & (np.diff(stacks[order]) == 0)
        & (np.diff(start[order]) < 3 * step // 2)
    )
    firsts = np.flatnonzero(np.append(True, ~same))
    counts = np.diff(np.append(firsts, len(order)))
    ends = start[order][firsts + counts - 1]
    rows = order[firsts]
    # The report wants samples in order of process and start; the runs were made in order of thread.
    back = np.lexsort((start[rows], process[rows]))
    rows, counts, ends = rows[back], counts[back], ends[back]
    process, thread, start, stacks = process[rows], thread[rows], start[rows], stacks[rows]
    around = enclosing(context.ranges, thread, start)
    size = len(rows)
    context.write("frames", tree.rows(int(process[0])))
    context.write(
        "samples",
        {
            "id": numbered(process),
            "process": process,
            "thread": thread,
            "start": start,
            "end": ends,
            "kind": [tree.kind] * size,
            "count": counts,
            "weight": counts * step,
            "on_cpu": np.ones(size, bool),
            "stack": pa.array(stacks, pa.int64(), mask=stacks < 0),
            "range": pa.array(around, pa.int64(), mask=around < 0),
        },
    )


class _FrameRows:
    """The tree of all stacks."""

    def __init__(self) -> None:
        self._frames: dict[tuple[Any, ...], int] = {}
        self._rows: list[dict[str, Any]] = []
        self.kind = "python"

    def add(self, parent: int | None, description: tuple[str, str, str, int]) -> int:
        key = (parent, *description)
        if key not in self._frames:
            function, path, build, address = description
            python = path.endswith((".py", ">")) and not build
            if not python:
                self.kind = "native"
            depth = 0 if parent is None else self._rows[parent]["depth"] + 1
            place: dict[str, Any] = (
                {"file": path or None, "line": address or None}
                if python
                else {"module": path.rpartition("/")[2] or None}
            )
            if not python:
                place |= {"path": path or None, "address": address, "build_id": build or None}
            kind = "python" if python else "kernel" if path == "[kernel]" else "native"
            self._frames[key] = len(self._rows)
            self._rows.append({"parent": parent, "depth": depth, "kind": kind, "function": function, **place})
        return self._frames[key]

    def rows(self, process: int) -> list[dict[str, Any]]:
        return [{**row, "frame": number, "process": process} for number, row in enumerate(self._rows)]


def _intern(state: _Sequence, message: dict[int, list[wire.Value]]) -> None:
    for kind in (_FUNCTIONS, _BUILDS, _PATHS):
        for data in wire.inner(message, kind):
            entry = wire.message(data)
            state.texts[kind, wire.whole(entry, 1)] = wire.text(entry, 2) or ""
    for kind, into in ((_MAPPINGS, state.mappings), (_FRAMES, state.frames)):
        for data in wire.inner(message, kind):
            entry = wire.message(data)
            into[wire.whole(entry, 1)] = entry
    for data in wire.inner(message, _STACKS):
        entry = wire.message(data)
        frames: list[int] = []
        for value in entry.get(2, ()):
            frames += [value] if isinstance(value, int) else _packed(value)
        state.stacks[wire.whole(entry, 1)] = frames


def _packed(data: bytes) -> list[int]:
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def _stack(state: _Sequence, tree: _FrameRows, number: int) -> int | None:
    if number not in state.known:
        parent: int | None = None
        for frame in state.stacks.get(number, ()):
            parent = tree.add(parent, _frame(state, frame))
        state.known[number] = parent
    return state.known[number]


def _frame(state: _Sequence, number: int) -> tuple[str, str, str, int]:
    frame = state.frames.get(number, {})
    mapping = state.mappings.get(wire.whole(frame, 3), {})
    path = "/".join(
        state.texts.get((_PATHS, part), "") for part in mapping.get(7, ()) if isinstance(part, int)
    )
    if "/" in path:
        path = f"/{path}"  # its parts are those between slashes
    build = state.texts.get((_BUILDS, wire.whole(mapping, 2)), "")
    name = (
        state.texts.get((_FUNCTIONS, wire.whole(frame, 2)))
        or f"[{path.rpartition('/')[2]}]+0x{wire.whole(frame, 4):x}"
    )
    return name, path, build, wire.whole(frame, 4)


def _interval(thread: Any, start: Any) -> int:
    """Return the time between the samples of a thread, as a rule."""
    order = np.lexsort((start, thread))
    steps = np.diff(start[order])[np.diff(thread[order]) == 0]
    steps = steps[steps > 0]
    return int(np.median(steps)) if len(steps) else _USUAL
