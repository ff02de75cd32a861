"""Reads a Perfetto trace with Perfetto's own protobuf classes, as trace_processor would."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass
class Slice:
    name: str
    start: int
    track: int
    categories: list[str]
    notes: dict[str, Any]
    end: int = -1
    parent: Slice | None = None
    arrows: list[int] = field(default_factory=list)
    arrows_end: list[int] = field(default_factory=list)


@dataclass
class Decoded:
    tracks: dict[int, Any] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    clocks: list[dict[int, int]] = field(default_factory=list)
    samples: list[tuple[str, int, float]] = field(default_factory=list)

    def path(self, uuid: int) -> str:
        """Name a track and what it is below."""
        track = self.tracks[uuid]
        own = (
            track.thread.thread_name
            if track.HasField("thread")
            else track.process.process_name
            if track.HasField("process")
            else track.name
        )
        return f"{self.path(track.parent_uuid)} / {own}" if track.parent_uuid else str(own)


def annotation(note: Any, texts: dict[int, str]) -> Any:
    if note.dict_entries:
        return {entry.name: annotation(entry, texts) for entry in note.dict_entries}
    if note.array_values:
        return [annotation(item, texts) for item in note.array_values]
    kind = note.WhichOneof("value")
    return texts[note.string_value_iid] if kind == "string_value_iid" else getattr(note, kind)


def decode(path: Path) -> Decoded:
    """Read a trace as trace_processor does: sorted by time, stable in file order; END closes the innermost slice of its track."""
    trace = trace_pb2.Trace()
    trace.ParseFromString(path.read_bytes())
    out = Decoded()
    names: dict[int, str] = {}
    categories: dict[int, str] = {}
    notes: dict[int, str] = {}
    strings: dict[int, str] = {}
    events = []
    for packet in trace.packet:
        if packet.sequence_flags & 1:
            names, categories, notes, strings = {}, {}, {}, {}
            assert packet.trace_packet_defaults.timestamp_clock_id == 3
        names.update({entry.iid: entry.name for entry in packet.interned_data.event_names})
        categories.update({entry.iid: entry.name for entry in packet.interned_data.event_categories})
        notes.update({entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names})
        strings.update(
            {entry.iid: entry.str.decode() for entry in packet.interned_data.debug_annotation_string_values}
        )
        if packet.HasField("clock_snapshot"):
            out.clocks.append({clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks})
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in out.tracks
            out.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            event = packet.track_event
            assert event.track_uuid in out.tracks, "a track is described before its first event"
            if event.type == COUNTER:
                track = out.tracks[event.track_uuid]
                out.samples.append(
                    (track.name, packet.timestamp, getattr(event, event.WhichOneof("counter_value_field")))
                )
                continue
            found = {notes[note.name_iid]: annotation(note, strings) for note in event.debug_annotations}
            texts = [categories[iid] for iid in event.category_iids]
            events.append(
                (
                    packet.timestamp,
                    event.type,
                    Slice(names.get(event.name_iid, ""), packet.timestamp, event.track_uuid, texts, found),
                )
            )
            events[-1][2].arrows, events[-1][2].arrows_end = (
                list(event.flow_ids),
                list(event.terminating_flow_ids),
            )
    events.sort(key=lambda event: event[0])
    stacks: dict[int, list[Slice]] = defaultdict(list)
    for time, kind, item in events:
        stack = stacks[item.track]
        if kind == BEGIN:
            item.parent = stack[-1] if stack else None
            stack.append(item)
            out.slices.append(item)
        elif kind == END:
            stack.pop().end = time
        else:
            assert kind == INSTANT
            out.instants.append(item)
    assert not any(stacks.values()), "every slice is ended"
    return out
