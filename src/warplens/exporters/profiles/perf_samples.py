"""Samples as Perfetto's PerfSample packets, with their interned stacks.

See perfetto/trace/profiling/{profile_packet,profile_common}.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.analysis.cpu.samples import kind_of
from warplens.analysis.dictionaries import codes
from warplens.exporters.perfetto.batch import Interned
from warplens.exporters.profiles.stacks import Labels, ProfileThreads
from warplens.exporters.protobuf import message, number
from warplens.exporters.tracks import batches, values

if TYPE_CHECKING:
    from warplens.arrays import Int64Array
    from warplens.report import Report

# Field numbers of TracePacket, then of InternedData.
_PACKET, _TIME, _SEQUENCE, _INTERNED, _FLAGS, _SAMPLE = 1, 8, 10, 12, 13, 66
_FUNCTIONS, _FRAMES, _STACKS, _BUILDS, _PATHS, _MAPPINGS = 5, 6, 7, 16, 17, 19
_NEEDS_STATE = number(_FLAGS, 2)
_COLUMNS = ("process", "thread", "start", "end", "kind", "count", "on_cpu", "stack")
_AT_ONCE = 1 << 16  # as Python objects


class PerfSamples:
    """The samples of threads that ran, one packet for each tick: Perfetto counts them."""

    def __init__(self, report: Report, sequence: int) -> None:
        self._report = report
        self._end = number(_SEQUENCE, sequence) + _NEEDS_STATE
        self._functions, self._paths, self._builds = Interned(_FUNCTIONS), Interned(_PATHS), Interned(_BUILDS)
        self._mappings: dict[tuple[str, str], int] = {}
        self._frames: dict[int, int] = {}
        self._stacks: dict[int, int] = {}
        self._new: list[bytes] = []

    def packets(self) -> Iterator[bytes]:
        """Yield the packets, each after what it needs; nothing if there are no samples."""
        if not self._report.tables["samples"]:
            return
        kind = kind_of(self._report)
        labels, threads = Labels.of(self._report, lines=True), ProfileThreads(self._report)
        for batch in batches(self._report, "samples", _COLUMNS, most=_AT_ONCE):
            numbers, texts = codes(batch.column("kind"))
            own = numbers == (texts.to_pylist().index(kind) if kind in texts.to_pylist() else -2)
            ran = batch.column("on_cpu").to_numpy(zero_copy_only=False)
            batch = batch.filter(own if kind == "native" else own & ran)
            stacks = labels.frames.positions(batch.column("stack"))
            yield from self._batch(
                labels,
                threads,
                stacks,
                *(values(batch, name) for name in ("thread", "start", "end", "count")),
            )

    def _batch(
        self,
        labels: Labels,
        threads: ProfileThreads,
        stacks: Int64Array,
        thread: Int64Array,
        start: Int64Array,
        end: Int64Array,
        count: Int64Array,
    ) -> Iterator[bytes]:
        bodies: dict[tuple[int, int], bytes] = {}
        parts = []
        for at, stack, first, last, ticks in zip(
            thread.tolist(), stacks.tolist(), start.tolist(), end.tolist(), count.tolist(), strict=True
        ):
            body = bodies.get((at, stack))
            if body is None:
                pid, tid = threads.ids(at)
                sample = message(
                    _SAMPLE,
                    number(2, pid),
                    number(3, tid),
                    number(4, self._stack(labels, stack)),
                    number(5, 2),
                )
                body = bodies[at, stack] = sample + self._end
            step = (last - first) / max(ticks - 1, 1)
            parts += [
                message(_PACKET, number(_TIME, first + round(tick * step)), body) for tick in range(ticks)
            ]
        known = [
            entry
            for interned in (self._functions, self._paths, self._builds)
            for entry in interned.take_new()
        ]
        if known or self._new:
            yield message(_PACKET, message(_INTERNED, *known, *self._new), self._end)
            self._new = []
        yield b"".join(parts)

    def _stack(self, labels: Labels, stack: int) -> int:
        known = self._stacks.get(stack)
        if known is None:
            known = self._stacks[stack] = len(self._stacks) + 1
            frames = [number(2, self._frame(labels, position)) for position in labels.positions(stack)]
            self._new.append(message(_STACKS, number(1, known), *frames))
        return known

    def _frame(self, labels: Labels, position: int) -> int:
        """Number a frame: its function, and its place in a library, or for Python its line in a file."""
        label = int(labels.numbers[position])
        if label not in self._frames:
            frame = labels.frames.frame(position)
            path, build, address = labels.code(position)
            mapping = self._mapping(path or frame.module or frame.file or f"[{frame.kind}]", build)
            known = self._frames[label] = len(self._frames) + 1
            place = number(4, address or frame.line or 0)
            self._new.append(
                message(
                    _FRAMES,
                    number(1, known),
                    number(2, self._functions.id(frame.function)),
                    number(3, mapping),
                    place,
                )
            )
        return self._frames[label]

    def _mapping(self, path: str, build: str) -> int:
        known = self._mappings.get((path, build))
        if known is None:
            known = self._mappings[path, build] = len(self._mappings) + 1
            parts = [number(7, self._paths.id(part)) for part in path.split("/") if part]
            about = [number(2, self._builds.id(build))] if build else []
            self._new.append(message(_MAPPINGS, number(1, known), *about, *parts))
        return known
