"""The Perfetto export, decoded with Perfetto's own protobuf classes: what nests and how long it takes must equal the tables."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from tests.unit.exporters.perfetto_trace import Decoded, decode
from warplens import catalog
from warplens.exporters.formats import perfetto
from warplens.exporters.tracks import Process
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


def export(tmp_path: Path, picture: str, **options: Any) -> tuple[Decoded, Any]:
    timeline(tmp_path / "r.warplens", picture, **options)
    report = open_report(tmp_path / "r.warplens")
    out = tmp_path / "r.perfetto-trace"
    catalog.find("exporters.formats", "perfetto").load().write(report, out)
    return decode(out), report


def test_nesting_and_durations_equal_the_tables(tmp_path: Path) -> None:
    decoded, report = export(
        tmp_path,
        """
        main    |[step           ][step     ]  !save
        main    | [load  ][fwd ]
        main    |  [io ]
        main@lib|            [cross ]
        p1/main | {a     }   {a }
        p1/main |    {b       }
        p1/main |  <open
        """,
    )
    rows = {row["id"]: row for row in report.table("nvtx_ranges").to_pylist()}
    wanted = sorted((row["start"], row["end"], row["message"]) for row in rows.values())
    assert sorted((item.start, item.end, item.name) for item in decoded.slices) == wanted
    by_key = {(item.start, item.end, item.name): item for item in decoded.slices}
    for row in rows.values():
        item = by_key[row["start"], row["end"], row["message"]]
        if item.parent is not None:
            parent = rows[row["parent"]]
            assert (item.parent.start, item.parent.end, item.parent.name) == (
                parent["start"],
                parent["end"],
                parent["message"],
            )
    nested = {item.name: item.parent.name for item in decoded.slices if item.parent is not None}
    assert nested == {"load": "step", "fwd": "step", "io": "load"}
    assert [(item.name, item.start) for item in decoded.instants] == [
        ("save", report.table("nvtx_marks").column("start")[0].as_py())
    ]


def test_tracks_are_the_processes_and_threads(tmp_path: Path) -> None:
    decoded, report = export(
        tmp_path, "main |[a ]\nw |[b ]\np1/main |{c }\np1/main | {d }", ranks={"": 0, "p1": 1}
    )
    processes = {uuid: track.process for uuid, track in decoded.tracks.items() if track.HasField("process")}
    assert [(process.pid, process.process_name, list(process.cmdline)) for process in processes.values()] == [
        (100, "rank 0: python", ["python", "train.py"]),
        (101, "rank 1: python", ["python", "train.py"]),
    ]
    threads = [track for track in decoded.tracks.values() if track.HasField("thread")]
    assert [(track.thread.pid, track.thread.tid, track.thread.thread_name) for track in threads] == [
        (100, 1000, "main"),
        (100, 1001, "w"),
    ]
    assert all(track.parent_uuid in processes for track in threads)
    crossing = [track for track in decoded.tracks.values() if track.name == "start/end ranges"]
    assert len(crossing) == 2, "two start/end ranges that overlap need a track each"
    assert report.tables["nvtx_ranges"] == 4


def test_processes_are_not_looked_for_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand, that took ten seconds."""
    comparisons: list[object] = []

    def compare(one: object, other: object) -> bool:
        comparisons.append(one)
        return one is other

    monkeypatch.setattr(Process, "__eq__", compare)
    export(tmp_path, "main |[a ]\np1/main |[b ]\np2/main |[c ]", ranks={"": 0, "p1": 1, "p2": 2})
    assert not comparisons


@given(st.text("ab \t\"'\\#é\u2003", max_size=8))
def test_commands_are_split_as_a_shell_does(command: str) -> None:
    try:
        wanted = shlex.split(command)
    except ValueError:
        wanted = [command]
    assert perfetto._words(command) == wanted


def test_labels_are_kept(tmp_path: Path) -> None:
    extra = {
        "a": {"color": 0xFF12ABEF, "payload_int": -7, "category": "io", "category_id": 3},
        "b": {"payload_float": 1.5, "category_id": 9},
    }
    decoded, _ = export(tmp_path, "main |[a ][b ]<c\nmain@dom |!m", extra=extra)
    a, b, c = sorted(decoded.slices, key=lambda item: item.name)
    assert (a.categories, a.notes) == (["nvtx", "io"], {"color": "#12ABEF", "payload": -7})
    assert (b.categories, b.notes) == (["nvtx", "9"], {"payload": 1.5})
    assert c.notes == {"unfinished": True}
    assert decoded.instants[0].categories == ["dom"]


def test_tasks_are_tracks_below_their_thread(tmp_path: Path) -> None:
    decoded, report = export(
        tmp_path,
        """
        main    |[run                    ]
        main#t1 |  {fetch     }
        main#t1 |    [parse]    !done
        main#t2 |     {fetch     }
        idle#t3 | {wait  }
        """,
    )
    rows = report.table("nvtx_ranges").to_pylist()
    assert sorted((i.start, i.end, i.name) for i in decoded.slices) == sorted(
        (r["start"], r["end"], r["message"]) for r in rows
    )
    parents = {item.name: item.parent.name if item.parent else None for item in decoded.slices}
    assert parents == {"run": None, "fetch": None, "parse": "fetch", "wait": None}
    tracks = {
        decoded.tracks[item.track].name: decoded.tracks[decoded.tracks[item.track].parent_uuid]
        for item in decoded.slices
    }
    assert {name: parent.thread.thread_name for name, parent in tracks.items() if name} == {
        "t1": "main",
        "t2": "main",
        "t3": "idle",
    }
    assert decoded.tracks[decoded.instants[0].track].name == "t1"
    keys = [track.sibling_merge_key_int for track in decoded.tracks.values() if track.name]
    assert len(set(keys)) == 3, "tasks of one name are not merged"


def test_payloads_are_annotations(tmp_path: Path) -> None:
    given = {
        "batch": 3,
        "loss": 0.25,
        "ok": True,
        "names": ["a", "ü"],
        "deep": {"x": [1, -2]},
        "big": 2**64 - 1,
    }
    payloads = {"a": [given, [1.5, 2.5]], "m": ["text"]}
    ends, extra = {"a": [7], "b": [{"bytes": 1}]}, {"a": {"payload_int": 7}}
    decoded, _ = export(tmp_path, "main |[a ][a ][b ] !m", payloads=payloads, end_payloads=ends, extra=extra)
    first, second, third = sorted(decoded.slices, key=lambda item: item.start)
    assert first.notes == {"payload": given, "end payload": 7}
    assert second.notes == {"payload": [1.5, 2.5], "end payload": 7}
    assert third.notes == {"end payload": {"bytes": 1}}
    assert decoded.instants[0].notes == {"payload": "text"}


def test_counters_have_tracks_with_units(tmp_path: Path) -> None:
    counters = {
        "mem": {"unit": "bytes", "description": "in use", "scale": 1024.0},
        "sent": {"value_type": "delta", "unit": "packets"},
        "loss": {},
    }
    picture = "main |[a              ]\nmain~mem |1   2 ?  3\nmain~sent@net |5\np1/main~loss |  0.5  0.25"
    decoded, report = export(tmp_path, picture, counters=counters)
    origin = report.origin
    assert sorted(decoded.samples) == [
        ("loss", origin + 2_000, 0.5),
        ("loss", origin + 7_000, 0.25),
        ("mem", origin, 1024),
        ("mem", origin + 4_000, 2048),
        ("mem", origin + 9_000, 3072),
        ("net:sent", origin, 5),
    ]
    tracks = {track.name: track for track in decoded.tracks.values() if track.HasField("counter")}
    assert (tracks["mem"].counter.unit, tracks["mem"].description, tracks["mem"].counter.is_incremental) == (
        3,
        "in use",
        False,
    )
    assert (tracks["net:sent"].counter.unit_name, tracks["net:sent"].counter.is_incremental) == (
        "packets",
        True,
    )
    pids = {name: decoded.tracks[track.parent_uuid].process.pid for name, track in tracks.items()}
    assert pids == {"mem": 100, "net:sent": 100, "loss": 101}


def test_the_clock_is_monotonic_and_tied_to_real_time(tmp_path: Path) -> None:
    decoded, _ = export(tmp_path, "main |[a ]", realtime_offset=5_000, origin=100)
    assert decoded.clocks == [{3: 100, 1: 5_100}]


def test_ranges_without_duration_end_where_they_begin(tmp_path: Path) -> None:
    decoded, _ = export(tmp_path, "main |[a  ][b  ]\nmain |  []", tick_ns=0)
    assert all(item.start == item.end for item in decoded.slices)


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(2, 25), st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_any_arrangement_keeps_its_times(
    tmp_path_factory: pytest.TempPathFactory, items: list[tuple[int, int, int, bool]]
) -> None:
    lines = [
        f"t{thread}@d{number} |{' ' * start}{'{' if cross else '['}r{number}{' ' * max(length - 4, 0)}{'}' if cross else ']'}"
        for number, (thread, start, length, cross) in enumerate(items)
    ]
    decoded, report = export(tmp_path_factory.mktemp("any"), "\n".join(lines))
    rows = report.table("nvtx_ranges").to_pylist()
    assert sorted((i.start, i.end, i.name) for i in decoded.slices) == sorted(
        (r["start"], r["end"], r["message"]) for r in rows
    )
    named = {row["message"]: row for row in rows}
    ids = {row["id"]: row["message"] for row in rows}
    for item in decoded.slices:
        if item.parent is not None:
            assert ids[named[item.name]["parent"]] == item.parent.name
