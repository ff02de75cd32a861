"""Perfetto traces of others, written with Perfetto's own protobuf classes, as reports."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from warplens.errors import NotAReport, ReportError
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report

trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
PROCESS, MAIN, QUEUE, MEMORY = 10, 11, 12, 13


class Story:
    """A trace that is told packet by packet."""

    def __init__(self, sequence: int = 1) -> None:
        self.trace = trace_pb2.Trace()
        self.sequence = sequence

    def packet(self, time: int | None = None, **fields: Any) -> Any:
        packet = self.trace.packet.add(trusted_packet_sequence_id=self.sequence, **fields)
        if time is not None:
            packet.timestamp = time
        return packet

    def tracks(self) -> Story:
        process = self.packet().track_descriptor
        process.uuid, process.process.pid, process.process.process_name = PROCESS, 42, "app"
        process.process.cmdline.extend(["app", "two words"])
        main = self.packet().track_descriptor
        main.uuid, main.parent_uuid, main.thread.pid, main.thread.tid, main.thread.thread_name = (
            MAIN,
            PROCESS,
            42,
            43,
            "main",
        )
        queue = self.packet().track_descriptor
        queue.uuid, queue.parent_uuid, queue.name = QUEUE, PROCESS, "queue"
        memory = self.packet().track_descriptor
        memory.uuid, memory.parent_uuid, memory.name, memory.counter.unit = MEMORY, PROCESS, "memory", 3
        return self

    def event(self, time: int, kind: int, track: int = MAIN, name: str = "", **fields: Any) -> Any:
        event = self.packet(time).track_event
        event.type, event.track_uuid = kind, track
        if name:
            event.name = name
        for field, value in fields.items():
            setattr(event, field, value)
        return event

    def slice(self, begin: int, end: int, name: str, track: int = MAIN) -> Any:
        event = self.event(begin, BEGIN, track, name)
        self.event(end, END, track)
        return event


def imported(tmp_path: Path, story: Story | bytes, name: str = "run.pftrace") -> Report:
    source = tmp_path / name
    source.write_bytes(story if isinstance(story, bytes) else story.trace.SerializeToString())
    import_file(source, tmp_path / "run.warplens")
    return open_report(tmp_path / "run.warplens")


def said(report: Report) -> dict[str, int]:
    return {row["message"]: row["count"] for row in report.diagnostics.to_pylist()}


def test_slices_instants_and_counters_of_processes_and_threads(tmp_path: Path) -> None:
    story = Story().tracks()
    outer = story.event(100, BEGIN, name="outer")
    outer.categories.append("io")
    note = outer.debug_annotations.add(name="request")
    note.int_value = 7
    nested = outer.debug_annotations.add(name="deep")
    for key, value in (("x", 1), ("y", 2)):
        nested.dict_entries.add(name=key, int_value=value)
    story.slice(120, 150, "inner")
    story.event(160, INSTANT, name="here")
    story.event(200, END)
    story.slice(110, 300, "wait", QUEUE)
    story.slice(400, 500, "of the process", PROCESS)
    story.event(130, COUNTER, MEMORY, counter_value=4096)
    story.event(140, COUNTER, MEMORY, double_counter_value=1.5)
    story.event(450, BEGIN, name="open")
    report = imported(tmp_path, story)
    (process,) = report.table("processes").to_pylist()
    assert (process["pid"], process["name"], process["command"]) == (42, "app", "app 'two words'")
    ranges = {row["message"]: row for row in report.table("nvtx_ranges").to_pylist()}
    assert {name: (row["start"], row["end"], row["depth"]) for name, row in ranges.items()} == {
        "outer": (100, 200, 0),
        "inner": (120, 150, 1),
        "wait": (110, 300, 0),
        "of the process": (400, 500, 0),
        "open": (450, 500, 0),
    }
    assert ranges["inner"]["parent"] == ranges["outer"]["id"]
    assert (ranges["outer"]["category"], ranges["outer"]["domain"]) == ("io", None)
    assert [name for name, row in ranges.items() if row["unfinished"]] == ["open"]
    threads = {row["thread"]: row["name"] for row in report.table("threads").to_pylist()}
    assert {threads[row["thread"]] for row in ranges.values()} == {"main"}
    tasks = {row["task"]: row["name"] for row in report.table("tasks").to_pylist()}
    assert {name: tasks[row["task"]] for name, row in ranges.items() if row["task"]} == {
        "wait": "queue",
        "of the process": "process",
    }
    assert [(row["message"], row["start"]) for row in report.table("nvtx_marks").to_pylist()] == [
        ("here", 160)
    ]
    (payload,) = report.table("payloads").to_pylist()
    assert (payload["event"], json.loads(payload["json"])) == (
        ranges["outer"]["id"],
        {"request": 7, "deep": {"x": 1, "y": 2}},
    )
    (counter,) = report.table("nvtx_counters").to_pylist()
    assert (counter["name"], counter["unit"]) == ("memory", "bytes")
    samples = report.table("nvtx_counter_samples").to_pylist()
    assert [(row["start"], row["value_int"], row["value_float"]) for row in samples] == [
        (130, 4096, None),
        (140, None, 1.5),
    ]


def test_texts_are_of_their_sequence_until_it_begins_anew(tmp_path: Path) -> None:
    story = Story().tracks()
    for name, begin in (("first", 10), ("second", 30)):
        packet = story.packet(sequence_flags=1)
        packet.interned_data.event_names.add(iid=5, name=name)
        packet.interned_data.event_categories.add(iid=1, name="a")
        packet.interned_data.event_categories.add(iid=2, name="b")
        packet.trace_packet_defaults.track_event_defaults.track_uuid = MAIN
        for time, kind in ((begin, BEGIN), (begin + 10, END)):
            packet = story.packet(time, sequence_flags=2)
            packet.track_event.type = kind
            if kind == BEGIN:
                packet.track_event.name_iid = 5
                packet.track_event.category_iids.extend([1, 2])
    lost = Story(2)
    lost.trace.packet.add(trusted_packet_sequence_id=2, previous_packet_dropped=1)
    lost.packet(50, sequence_flags=2).track_event.name_iid = 5
    story.trace.MergeFrom(lost.trace)
    report = imported(tmp_path, story)
    rows = report.table("nvtx_ranges").to_pylist()
    assert [(row["start"], row["end"], row["message"], row["category"]) for row in rows] == [
        (10, 20, "first", "a,b"),
        (30, 40, "second", "a,b"),
    ]
    assert said(report)["events whose names were lost before the trace begins were left out"] == 1


def test_clocks_are_brought_together(tmp_path: Path) -> None:
    story = Story().tracks()
    snapshot = story.packet().clock_snapshot
    for clock, time in ((1, 1_000_000), (3, 500), (6, 1_500)):
        snapshot.clocks.add(clock_id=clock, timestamp=time)
    scoped = story.packet().clock_snapshot
    scoped.clocks.add(clock_id=64, timestamp=2, unit_multiplier_ns=1_000, is_incremental=True)
    scoped.clocks.add(clock_id=6, timestamp=3_000)
    story.slice(1_600, 1_700, "boot")
    story.slice(610, 650, "mono")
    for packet in story.trace.packet[-2:]:
        packet.timestamp_clock_id = 3
    story.slice(1, 2, "steps")
    for packet in story.trace.packet[-2:]:
        packet.timestamp_clock_id = 64
    story.slice(2_000, 2_100, "boot again")
    report = imported(tmp_path, story)
    found = {row["message"]: (row["start"], row["end"]) for row in report.table("nvtx_ranges").to_pylist()}
    assert found == {
        "boot": (1_600, 1_700),
        "mono": (1_610, 1_650),
        "steps": (4_000, 6_000),
        "boot again": (2_000, 2_100),
    }
    assert report.manifests[0].realtime_offset == 1_000_000 - 1_500


def test_events_of_older_formats(tmp_path: Path) -> None:
    story = Story()
    thread = story.packet().thread_descriptor
    thread.pid, thread.tid, thread.thread_name = 7, 8, "old"
    whole = story.packet(1_000).track_event
    whole.name, whole.legacy_event.phase, whole.legacy_event.duration_us = "whole", ord("X"), 3
    for time, phase in ((2_000, "b"), (9_000, "e")):
        event = story.packet(time).track_event
        event.name, event.legacy_event.phase, event.legacy_event.unscoped_id = "async", ord(phase), 77
    other = story.packet(5_000).track_event
    other.name, other.legacy_event.phase, other.legacy_event.tid_override = "there", ord("I"), 9
    story.packet(6_000).track_event.legacy_event.phase = ord("O")
    report = imported(tmp_path, story)
    rows = report.table("nvtx_ranges").to_pylist()
    assert [(row["message"], row["start"], row["end"]) for row in rows] == [
        ("whole", 1_000, 4_000),
        ("async", 2_000, 9_000),
    ]
    assert sorted((row["tid"], row["name"]) for row in report.table("threads").to_pylist()) == [
        (8, "old"),
        (9, None),
    ]
    assert [row["message"] for row in report.table("nvtx_marks").to_pylist()] == ["there"]
    assert said(report)["events of a kind that is not known were left out"] == 1


def test_stages_of_gpus_are_kernels_and_copies(tmp_path: Path) -> None:
    story = Story().tracks()
    interned = story.packet(sequence_flags=1).interned_data
    interned.graphics_contexts.add(iid=4, pid=42, api=4)
    interned.gpu_specifications.add(iid=1, name="CUDA stream 7")
    interned.gpu_specifications.add(iid=2, name="Compute")
    kernel = story.packet(1_000, sequence_flags=2).gpu_render_stage_event
    kernel.duration, kernel.hw_queue_iid, kernel.stage_iid, kernel.context, kernel.gpu_id, kernel.name = (
        500,
        1,
        2,
        4,
        1,
        "gemm",
    )
    kernel.launch.grid_size.x, kernel.launch.grid_size.y, kernel.launch.workgroup_size.x = 8, 2, 128
    kernel.extra_data.add(name="registers", value="40")
    copy = story.packet(2_000, sequence_flags=2).gpu_render_stage_event
    copy.duration, copy.hw_queue_iid, copy.stage_iid, copy.context, copy.gpu_id, copy.name = (
        50,
        1,
        2,
        4,
        1,
        "Memcpy HtoD",
    )
    copy.extra_data.add(name="bytes", value="4096")
    report = imported(tmp_path, story)
    (row,) = report.table("kernels").to_pylist()
    assert (row["name"], row["start"], row["end"], row["device"], row["context"], row["stream"]) == (
        "gemm",
        1_000,
        1_500,
        1,
        4,
        7,
    )
    assert (row["grid_x"], row["grid_y"], row["block_x"], row["registers"]) == (8, 2, 128, 40)
    (row,) = report.table("memcpys").to_pylist()
    assert (row["kind"], row["bytes"]) == ("Host-to-Device", 4096)
    (process,) = report.table("processes").to_pylist()
    assert process["pid"] == 42
    assert [row["stream"] for row in report.table("streams").to_pylist()] == [7]


def test_packets_that_are_not_imported_are_counted(tmp_path: Path) -> None:
    story = Story().tracks()
    story.slice(1, 2, "a").flow_ids.append(3)
    story.packet().chrome_events.SetInParent()
    story.packet().chrome_events.SetInParent()
    story.packet().android_log.SetInParent()
    story.event(5, END)
    messages = said(imported(tmp_path, story))
    assert messages["packets `chrome_events` have no place in a report"] == 2
    assert messages["packets `android_log` have no place in a report"] == 1
    assert messages["arrows (flows) between events have no place in a report"] == 1
    assert messages["ends of slices that nothing began were left out"] == 1


@pytest.mark.parametrize("how", ["plain", "gzip", "packets"])
def test_compressed_traces_are_the_same(how: str, tmp_path: Path) -> None:
    story = Story().tracks()
    for number in range(50):
        story.slice(number * 10, number * 10 + 5, f"slice {number}")
    data = story.trace.SerializeToString()
    if how == "packets":
        outer = trace_pb2.Trace()
        outer.packet.add(compressed_packets=zlib.compress(data))
        data = outer.SerializeToString()
    report = imported(tmp_path, gzip.compress(data) if how == "gzip" else data)
    assert [row["message"] for row in report.table("nvtx_ranges").to_pylist()] == [
        f"slice {number}" for number in range(50)
    ]


def test_a_trace_that_is_cut_short_gives_what_is_there(tmp_path: Path) -> None:
    story = Story().tracks()
    for number in range(50):
        story.slice(number * 10, number * 10 + 5, f"slice {number}")
    data = story.trace.SerializeToString()
    report = imported(tmp_path, data[: len(data) - 3])
    rows = report.table("nvtx_ranges").to_pylist()
    assert len(rows) == 50
    assert rows[-1]["unfinished"]
    assert [row["code"] for row in report.diagnostics.to_pylist()] == ["cut-short"]


def test_a_trace_that_begins_with_a_long_packet_is_one(tmp_path: Path) -> None:
    long = trace_pb2.Trace()
    long.packet.add().trace_attributes.attribute.add(key="k", string_value="x" * 100_000)
    story = Story().tracks()
    story.slice(1, 2, "a")
    report = imported(tmp_path, long.SerializeToString() + story.trace.SerializeToString())
    assert report.tables["nvtx_ranges"] == 1


def test_other_files_are_not_taken_for_traces(tmp_path: Path) -> None:
    for number, data in enumerate(
        (
            b"",
            b"\n",
            b"\n\n\n\n",
            b"hello\nworld",
            b"\n\x05hello",
            b"\nzbcd some text",
            b"{}",
            b"\x0a\x00\x0a\x00",
        )
    ):
        path = tmp_path / f"{number}.pftrace"
        path.write_bytes(data)
        with pytest.raises(NotAReport):
            import_file(path, tmp_path / f"{number}.warplens")


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    changes=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=12),
    length=st.integers(1, 4000),
)
def test_broken_bytes_are_an_error_or_a_report(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: int
) -> None:
    story = Story().tracks()
    story.packet().clock_snapshot.clocks.add(clock_id=6, timestamp=5)
    for number in range(20):
        event = story.slice(number * 10, number * 10 + 5, f"slice {number}")
        event.debug_annotations.add(name="n").nested_value.string_value = "x"
        event.legacy_event.phase = ord("B")
        stage = story.packet(number).gpu_render_stage_event
        stage.duration, stage.hw_queue_iid = 3, 1
    data = bytearray(story.trace.SerializeToString())
    for place, value in changes:
        data[place % len(data)] = value
    tmp_path = tmp_path_factory.mktemp("broken")
    try:
        report = imported(tmp_path, bytes(data[:length]))
    except (NotAReport, ReportError):
        return
    for table, rows in report.tables.items():
        assert report.table(table).num_rows == rows


def marks_of_atrace(story: Story, *marks: tuple[int, int, str], **about: int) -> None:
    """Add what programs wrote through ftrace: time, thread, text."""
    bundle = story.packet().ftrace_events
    for name, value in about.items():
        setattr(bundle, name, value)
    for time, tid, text in marks:
        event = bundle.event.add(timestamp=time, pid=tid)
        event.print.buf = text


def test_marks_of_atrace_are_ranges_marks_and_counters(tmp_path: Path) -> None:
    story = Story().tracks()
    marks_of_atrace(
        story,
        (100, 43, "B|42|draw|all\n"),
        (110, 43, "B|42|text\n"),
        (150, 43, "E|42\n"),
        (155, 44, "S|42|load|7\n"),
        (160, 43, "C|42|frames|waiting|3\n"),
        (165, 43, "I|42|vsync\n"),
        (170, 43, "E\n"),
        (175, 43, "G|42|network|fetch|9\n"),
        (180, 43, "H|42|network|9\n"),
        (190, 43, "F|42|load|7\n"),
    )
    with imported(tmp_path, story) as report:
        ranges = {row["message"]: row for row in report.table("nvtx_ranges").to_pylist()}
        tasks = {row["task"]: row["name"] for row in report.table("tasks").to_pylist()}
        marks = report.table("nvtx_marks").to_pylist()
        counter = report.table("nvtx_counters").to_pylist()[0]
        samples = report.table("nvtx_counter_samples").to_pylist()
        process = report.table("processes").to_pylist()[0]
    assert {name: (row["start"], row["end"]) for name, row in ranges.items()} == {
        "draw|all": (100, 170),
        "text": (110, 150),
        "load": (155, 190),
        "fetch": (175, 180),
    }
    assert ranges["text"]["parent"] == ranges["draw|all"]["id"]
    assert {name: tasks.get(row["task"]) for name, row in ranges.items()} == {
        "draw|all": None,
        "text": None,
        "load": "load",
        "fetch": "network",
    }
    assert [(row["message"], row["start"]) for row in marks] == [("vsync", 165)]
    assert (counter["name"], counter["process"]) == ("frames|waiting", process["process"])
    assert [(row["start"], row["value_int"]) for row in samples] == [(160, 3)]
    assert process["pid"] == 42


def test_times_of_another_clock_of_ftrace_are_moved(tmp_path: Path) -> None:
    story = Story().tracks()
    story.slice(5_000, 6_000, "beside")
    marks_of_atrace(
        story,
        (100, 43, "B|42|moved"),
        (300, 43, "E|42"),
        ftrace_clock=2,
        ftrace_timestamp=50,
        boot_timestamp=5_050,
    )
    with imported(tmp_path, story) as report:
        ranges = {
            row["message"]: (row["start"], row["end"]) for row in report.table("nvtx_ranges").to_pylist()
        }
    assert ranges == {"beside": (5_000, 6_000), "moved": (5_100, 5_300)}


def test_events_of_the_kernel_and_packets_of_later_versions_are_counted(tmp_path: Path) -> None:
    story = Story().tracks()
    story.slice(100, 200, "work")
    marks_of_atrace(story, (100, 43, "hello"), (110, 43, "B|what|name"), (120, 43, "C|42|lines|many"))
    bundle = story.packet().ftrace_events
    bundle.event.add(timestamp=120, pid=1).sched_switch.next_pid = 3
    bundle.event.add(timestamp=130, pid=1).sched_switch.next_pid = 4
    later = bytes([0x0A, 5, 0xC2, 0x3E, 2, 0x08, 1])  # field 1000 of a packet
    with imported(tmp_path, story.trace.SerializeToString() + later) as report:
        assert said(report) == {
            "events of the kernel have no place in a report: `print` texts that are none of atrace's": 3,
            "events of the kernel have no place in a report: `sched_switch`": 2,
            "packets `field 1000` have no place in a report": 1,
        }
