"""The CPU side in the Perfetto and Chrome exports: rows below their threads, what Perfetto itself reads, and stacks of samples."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports import cpu_story
from tests.unit.exporters.perfetto_trace import decode
from tests.unit.exporters.trace_processor import ask
from warplens import catalog
from warplens.errors import ReportError
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


NAMES = {
    "thread_states": "state",
    "osrt": "name",
    "file_access": "name",
    "gil": "state",
    "python_calls": "name",
    "imports": "name",
    "nvtx_ranges": "message",
}


def export(tmp_path: Path, kind: str, samples: str = "python") -> tuple[Path, Any]:
    cpu_story.write(tmp_path / "run.warplens", samples)
    report = open_report(tmp_path / "run.warplens")
    unit = catalog.find("exporters.formats", kind)
    out = tmp_path / f"run{unit.constant('SUFFIX')}"
    unit.load().write(report, out)
    return out, report


def slices(report: Any) -> Counter[tuple[str, int, int]]:
    """What must be there: name, begin and length of everything that took time."""
    found: Counter[tuple[str, int, int]] = Counter()
    for table, name in NAMES.items():
        found.update(
            (row[name], row["start"], row["end"] - row["start"]) for row in report.table(table).to_pylist()
        )
    found.update(("GC", row["start"], row["end"] - row["start"]) for row in report.table("gc").to_pylist())
    del found["ValueError", cpu_story.ORIGIN + 400_000, 0]
    return found


@pytest.mark.require("perfetto")
def test_rows_are_below_their_threads(tmp_path: Path) -> None:
    out, report = export(tmp_path, "perfetto")
    decoded = decode(out)
    rows = {decoded.path(item.track) for item in decoded.slices}
    assert rows == {
        *(
            f"python / main{row}"
            for row in (
                "",
                " / State",
                " / Python",
                " / Imports",
                " / GC",
                " / GIL",
                " / OS calls",
                " / File access",
            )
        ),
        *(f"python / loader / {row}" for row in ("State", "GIL (brief)", "OS calls")),
    }
    assert Counter((item.name, item.start, item.end - item.start) for item in decoded.slices) == slices(
        report
    )
    assert {(item.name, decoded.path(item.track)) for item in decoded.instants} == {
        ("go", "python / loader"),
        ("ValueError", "python / main / Python"),
    }
    call = next(item for item in decoded.slices if item.notes.get("error") == "EAGAIN")
    assert (call.notes["target"], call.notes["fd"], call.notes["result"]) == ("10.0.0.1:80", 5, -1)
    (read,) = [
        item
        for item in decoded.slices
        if item.name == "read" and decoded.path(item.track).endswith("OS calls")
    ]
    assert read.parent is not None
    assert read.parent.name == "fread"


@pytest.mark.require("perfetto")
@pytest.mark.require("perfetto-engine")
@pytest.mark.require("node")
def test_perfetto_reads_slices_and_stacks(tmp_path: Path) -> None:
    complaints = (
        "SELECT name, severity, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')"
    )
    every = "SELECT name, ts, dur FROM slice WHERE name NOT IN ('go', 'ValueError')"
    stacks = """SELECT tid, f.name, m.name, m.build_id, count(*) FROM perf_sample p JOIN thread USING(utid)
                JOIN stack_profile_callsite c ON p.callsite_id = c.id JOIN stack_profile_frame f ON c.frame_id = f.id
                JOIN stack_profile_mapping m ON f.mapping = m.id GROUP BY ALL ORDER BY 1, 2"""
    callers = """SELECT DISTINCT f.name, g.name FROM stack_profile_callsite c JOIN stack_profile_frame f ON c.frame_id = f.id
                 JOIN stack_profile_callsite d ON c.parent_id = d.id JOIN stack_profile_frame g ON d.frame_id = g.id ORDER BY 1, 2"""
    stacks = stacks.replace("GROUP BY ALL", "GROUP BY 1, 2, 3, 4")
    out, report = export(tmp_path, "perfetto")
    said, found, seen, called = ask(out, complaints, every, stacks, callers)
    assert said == []
    assert Counter(found) == slices(report)
    assert [(tid, name, mapping, count) for tid, name, mapping, _, count in seen] == [
        (1000, "Model.forward", "/app/model.py", 40),
        (1000, "load", "/app/train.py", 25),
        (1000, "main", "/app/train.py", 10),
        (1000, "memcpy", "/usr/lib/libc.so.6", 5),
        (1001, "fetch", "/app/loader.py", 4),
    ]
    assert ("memcpy", "load") in called
    assert ("main", "<module>") in called
    out, report = export(tmp_path / "chrome", "chrome")
    said, found = ask(out, complaints, every)
    assert said == []
    assert Counter((name, ts + cpu_story.ORIGIN, dur) for name, ts, dur in found) == slices(report)


def test_chrome_has_threads_and_stacks(tmp_path: Path) -> None:
    out, _ = export(tmp_path, "chrome", "native")
    document = json.loads(out.read_text(encoding="utf-8"))
    names = {
        event["args"]["name"]
        for event in document["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert {"main State", "main Python", "main OS calls", "loader GIL (brief)"} <= names
    frames, found = document["stackFrames"], Counter[tuple[int, str]]()
    for sample in document["samples"]:
        path, at = [], sample["sf"]
        while at is not None:
            path.append(frames[at]["name"])
            at = frames[at].get("parent")
        assert path[-1] in ("<module>", "Thread.run")
        found[sample["tid"], path[0]] += sample["weight"]
    assert found[1000, "Model.forward"] == 40
    assert found[1000, "memcpy"] == 5


@pytest.mark.parametrize("kind", ["perfetto", "chrome"])
def test_a_report_of_a_thread_that_is_not_there_is_broken(kind: str, tmp_path: Path) -> None:
    row = {
        "id": 0,
        "process": 0,
        "thread": 7,
        "start": 10**9,
        "end": 10**9 + 5,
        "name": "read",
        "group": "file",
        "result": 0,
    }
    timeline(tmp_path / "r.warplens", "main |[a ]", tables={"osrt": [row]})
    with pytest.raises(ReportError, match="osrt names the thread 7"):
        catalog.find("exporters.formats", kind).load().write(
            open_report(tmp_path / "r.warplens"), tmp_path / "out"
        )
