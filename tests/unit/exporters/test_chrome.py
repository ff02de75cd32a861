"""The Chrome export: valid JSON, exact times, and threads whose complete events nest."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from warplens import catalog
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


def export(tmp_path: Path, picture: str, **options: Any) -> dict[str, Any]:
    timeline(tmp_path / "r.warplens", picture, **options)
    out = tmp_path / "r.trace.json"
    catalog.find("exporters.formats", "chrome").load().write(open_report(tmp_path / "r.warplens"), out)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"), parse_float=Decimal)
    return found


def ns(event: dict[str, Any], key: str) -> int:
    exact = event[key] * 1000
    assert exact == int(exact)
    return int(exact)


def test_times_are_exact_and_names_escaped(tmp_path: Path) -> None:
    trace = export(tmp_path, 'main |[a"\\ü   ][b]', tick_ns=1_001, origin=7)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["name"], ns(event, "ts"), ns(event, "dur")) for event in events] == [
        ('a"\\ü', 0, 9_009),
        ("b", 9_009, 3_003),
    ]
    assert trace["displayTimeUnit"] == "ns"
    assert trace["otherData"]["origin_monotonic_ns"] == 7


def test_processes_and_threads_are_named(tmp_path: Path) -> None:
    trace = export(tmp_path, "main |[a ]\nw |[b ]")
    named = [
        (e["name"], e["pid"], e.get("tid"), e["args"]["name"]) for e in trace["traceEvents"] if e["ph"] == "M"
    ]
    assert named == [
        ("process_name", 100, None, "python"),
        ("thread_name", 100, 1000, "main"),
        ("thread_name", 100, 1001, "w"),
    ]


def test_complete_events_nest_on_every_thread(tmp_path: Path) -> None:
    trace = export(tmp_path, "main |[a      ]  [c ]\nmain@x |    [b      ]\nmain | [in ]")
    threads = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            threads[event["tid"]].append((ns(event, "ts"), ns(event, "ts") + ns(event, "dur")))
    assert len(threads) == 2
    for spans in threads.values():
        for start, end in spans:
            assert all(not (start < other < end < last) for other, last in spans)


def test_start_end_ranges_are_async_and_marks_are_instants(tmp_path: Path) -> None:
    extra = {
        "r": {"payload_float": float("inf"), "color": 0x010203, "category_id": 4},
        "m": {"payload_int": 2},
    }
    trace = export(tmp_path, "main |{r    }\nmain |  {s    }\nmain | !m", extra=extra)
    begin, end = [event for event in trace["traceEvents"] if event["name"] == "r"]
    assert (begin["ph"], end["ph"], begin["id"] == end["id"], begin["cat"]) == ("b", "e", True, "nvtx,4")
    assert ns(end, "ts") - ns(begin, "ts") == 7_000
    assert begin["args"] == {"payload": "inf", "color": "#010203"}
    mark = next(event for event in trace["traceEvents"] if event["ph"] == "i")
    assert (mark["name"], ns(mark, "ts"), mark["s"], mark["args"]) == ("m", 1_000, "t", {"payload": 2})


def test_tasks_are_threads_behind_their_thread(tmp_path: Path) -> None:
    trace = export(
        tmp_path,
        "a |[run  ]\nb |[run  ]\na#t1 |{fetch  }\na#t1 | [in ]\na#t2 | {fetch  } !m\na#t1@d |    [cross ]",
    )
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    order = {
        names[e["tid"]]: e["args"]["sort_index"]
        for e in trace["traceEvents"]
        if e["name"] == "thread_sort_index"
    }
    assert sorted(order, key=order.__getitem__) == ["a", "t1", "t2", "b"]
    shown = {(e["name"], names[e["tid"]]) for e in trace["traceEvents"] if e["ph"] in "Xi"}
    assert shown == {
        ("run", "a"),
        ("run", "b"),
        ("fetch", "t1"),
        ("in", "t1"),
        ("fetch", "t2"),
        ("m", "t2"),
        ("cross", "t1 (overlapping)"),
    }
    assert not [event for event in trace["traceEvents"] if event["ph"] in "be"]


@pytest.mark.slow
def test_payloads_are_arguments(tmp_path: Path) -> None:
    given = {"batch": 3, "names": ["a", None], "odd": float("nan")}
    trace = export(
        tmp_path,
        "main |[a ][b ] !m",
        payloads={"a": [given], "m": [[1, 2]]},
        end_payloads={"a": [7]},
        extra={"a": {"payload_int": 7}, "b": {"payload_int": 1}},
    )
    args = {event["name"]: event.get("args") for event in trace["traceEvents"] if event["ph"] in "Xi"}
    assert args == {
        "a": {"payload": {**given, "odd": "nan"}, "end payload": 7},
        "b": {"payload": 1},
        "m": {"payload": [1, 2]},
    }


def test_counters_are_counter_events(tmp_path: Path) -> None:
    counters = {"mem": {"unit": "bytes", "scale": 1024.0}, "sent": {"value_type": "delta"}}
    trace = export(
        tmp_path,
        "main |[a              ]\nmain~mem |1   2 ?\nmain~sent@net |5 7\nmain~loss |  0.5",
        counters=counters,
    )
    events = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    found = {
        name: [(ns(e, "ts"), e["args"]["value"]) for e in events if e["name"] == name]
        for name in dict.fromkeys(e["name"] for e in events)
    }
    assert found == {
        "mem (bytes)": [(0, 1024), (4_000, 2048)],
        "net:sent": [(0, 5), (2_000, 12)],
        "loss": [(2_000, Decimal("0.5"))],
    }
    assert {event["pid"] for event in events} == {100}
