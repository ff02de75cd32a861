"""Descriptors of a trace: names and parents of its tracks, processes and threads."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from warplens.arrays import int32
from warplens.importers.perfetto import wire
from warplens.importers.perfetto.trace import PerfettoTrace

_TREE, _PROCESS, _THREAD, _TRACK = 2, 43, 44, 60
_UNITS = {1: "ns", 2: "", 3: "bytes"}


@dataclass(frozen=True)
class CounterDescriptor:
    """A track of numbers; `delta`: they are changes."""

    unit: str
    scale: int
    delta: bool


@dataclass
class TrackDescriptor:
    """Parent of a track (uuid, 0: none) and its owner."""

    parent: int = 0
    name: str | None = None
    pid: int | None = None
    tid: int | None = None
    counter: CounterDescriptor | None = None
    description: str | None = None


@dataclass
class Described:
    """Tracks by uuid; names and commands of processes by pid.

    Names of threads and their process by tid.
    """

    tracks: dict[int, TrackDescriptor] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    commands: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    broken: int = 0

    def process_of(self, uuid: int) -> int | None:
        """Return the pid of the process that a track is of; None where it is of none."""
        for track in self.above(uuid):
            if track.pid is not None:
                return track.pid
        return None

    def above(self, uuid: int) -> list[TrackDescriptor]:
        """Return a track and what it is below, the innermost first."""
        path: list[TrackDescriptor] = []
        seen = set()
        while uuid in self.tracks and uuid not in seen:
            seen.add(uuid)
            path.append(self.tracks[uuid])
            uuid = self.tracks[uuid].parent
        return path


def described(trace: PerfettoTrace) -> Described:
    """Read the descriptors of a trace; later ones of a track add to the earlier ones."""
    result = Described()
    for packet in trace.others(_TREE, _PROCESS, _THREAD, _TRACK):
        try:
            message = wire.message(packet.data)
            if packet.field == _TRACK:
                _track(result, message)
            elif packet.field == _PROCESS:
                _process(result, message)
            elif packet.field == _THREAD:
                _thread(result, message)
            else:
                _tree(result, message)
        except ValueError:
            result.broken += 1
    return result


def _track(described: Described, message: dict[int, list[wire.Value]]) -> None:
    track = described.tracks.setdefault(wire.whole(message, 1), TrackDescriptor())
    track.parent = wire.whole(message, 5, track.parent)
    for name in (2, 10, 13):  # of several ways to name it
        track.name = wire.text(message, name) or track.name
    track.description = wire.text(message, 14) or track.description
    for data in wire.inner(message, 3):
        track.pid = _process(described, wire.message(data))
    for data in wire.inner(message, 4):
        track.pid, track.tid = _thread(described, wire.message(data))
    for data in wire.inner(message, 8):
        counter = wire.message(data)
        unit = wire.text(counter, 6) or _UNITS.get(wire.whole(counter, 3), "")
        track.counter = CounterDescriptor(
            unit, wire.signed(wire.whole(counter, 4)) or 1, wire.whole(counter, 5) != 0
        )


def _process(described: Described, message: dict[int, list[wire.Value]]) -> int:
    pid = int32(wire.whole(message, 1))
    command = wire.texts(message, 2)
    if command:
        described.commands[pid] = shlex.join(command)
    name = wire.text(message, 6) or (command[0] if command else None)
    if name:
        described.processes[pid] = name
    return pid


def _thread(described: Described, message: dict[int, list[wire.Value]]) -> tuple[int, int]:
    pid, tid = int32(wire.whole(message, 1)), wire.signed(wire.whole(message, 2))
    if name := wire.text(message, 5):
        described.threads[pid, tid] = name
    return pid, tid


def _tree(described: Described, message: dict[int, list[wire.Value]]) -> None:
    for data in wire.inner(message, 1):
        process = wire.message(data)
        pid, command = int32(wire.whole(process, 1)), wire.texts(process, 3)
        described.parents[pid] = int32(wire.whole(process, 2))
        if command:
            described.commands.setdefault(pid, shlex.join(command))
            described.processes.setdefault(pid, command[0])
    for data in wire.inner(message, 2):
        thread = wire.message(data)
        if name := wire.text(thread, 2):
            described.threads.setdefault((int32(wire.whole(thread, 3)), int32(wire.whole(thread, 1))), name)
