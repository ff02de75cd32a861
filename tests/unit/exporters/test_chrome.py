"""The Chrome export: valid JSON, exact times, and threads whose complete events nest."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from warpline import catalog
from warpline.query import open as open_report
from warpline.testing.timeline import timeline


def export(tmp_path: Path, picture: str, **options: Any) -> dict[str, Any]:
    timeline(tmp_path / "r.warpline", picture, **options)
    out = tmp_path / "r.trace.json"
    catalog.find("exporters.formats", "chrome").load().write(open_report(tmp_path / "r.warpline"), out)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"), parse_float=Decimal)
    return found


def ns(event: dict[str, Any], key: str) -> int:
    exact = event[key] * 1000
    assert exact == int(exact)
    return int(exact)


def test_times_are_exact_and_names_escaped(tmp_path: Path) -> None:
    trace = export(tmp_path, 'main |[a"\\ü   ][b]', tick_ns=1_001, origin=7)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [(event["name"], ns(event, "ts"), ns(event, "dur")) for event in events] == [('a"\\ü', 0, 9_009), ("b", 9_009, 3_003)]
    assert trace["displayTimeUnit"] == "ns"
    assert trace["otherData"]["origin_monotonic_ns"] == 7


def test_processes_and_threads_are_named(tmp_path: Path) -> None:
    trace = export(tmp_path, "main |[a ]\nw |[b ]")
    named = [(e["name"], e["pid"], e.get("tid"), e["args"]["name"]) for e in trace["traceEvents"] if e["ph"] == "M"]
    assert named == [("process_name", 100, None, "python"), ("thread_name", 100, 1000, "main"), ("thread_name", 100, 1001, "w")]


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
    extra = {"r": {"payload_float": float("inf"), "color": 0x010203, "category_id": 4}, "m": {"payload_int": 2}}
    trace = export(tmp_path, "main |{r    }\nmain |  {s    }\nmain | !m", extra=extra)
    begin, end = [event for event in trace["traceEvents"] if event["name"] == "r"]
    assert (begin["ph"], end["ph"], begin["id"] == end["id"], begin["cat"]) == ("b", "e", True, "nvtx,4")
    assert ns(end, "ts") - ns(begin, "ts") == 7_000
    assert begin["args"] == {"payload": "inf", "color": "#010203"}
    mark = next(event for event in trace["traceEvents"] if event["ph"] == "i")
    assert (mark["name"], ns(mark, "ts"), mark["s"], mark["args"]) == ("m", 1_000, "t", {"payload": 2})
