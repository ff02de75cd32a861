"""The windows of the capture in a report."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.convert.recording import NAMES, recording
from warplens.convert.finish import finish
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw


def test_a_run_without_any_option_has_one_window(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={})
    (spool / "control").write_bytes(sw.control([(400, 0, 1, 0, 0)]))
    manifest = finish(spool, tmp_path / "r.warplens")
    (row,) = open_report(tmp_path / "r.warplens").table("capture_windows").to_pylist()
    assert row == {
        "part": 0,
        "number": 1,
        "host": "host",
        "start": 400,
        "end": manifest.end,
        "opened_by": "start",
        "closed_by": "end",
        "process": None,
    }


def test_windows_name_the_process_that_opened_them(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={}, children=2)
    sw.write(
        spool, sw.spool([], {"pid": 11, "ppid": 10, "start_ns": 9_000}), pid=11, ticks=9
    )  # the id of a dead one
    table = [
        (1_000, 2_000, 3, 3, 10),
        (2_100, 2_200, 4, 4, 11),
        (9_500, 9_600, 5, 6, 11),
        (9_700, 0, 2, 0, 99),
    ]
    (spool / "control").write_bytes(sw.control(table))
    finish(spool, tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    rows = report.table("capture_windows").to_pylist()
    pids = {row["process"]: (row["pid"], row["start"]) for row in report.table("processes").to_pylist()}
    assert [
        (row["number"], row["opened_by"], row["closed_by"], pids.get(row["process"])) for row in rows
    ] == [
        (1, "nvtx", "nvtx", (10, 100)),
        (2, "cudaProfilerApi", "cudaProfilerApi", (11, 2_000)),
        (3, "command", "max-size", (11, 9_000)),
        (4, "time", "end", None),
    ]


@pytest.mark.slow
def test_each_part_counts_for_itself(tmp_path: Path) -> None:
    for name in ("a", "b"):
        spool = recording(tmp_path / name, launch={})
        (spool / "control").write_bytes(sw.control([(400, 500, 1, 5, 0), (600, 0, 5, 0, 0)]))
        finish(spool, tmp_path / "r.warplens")
    rows = open_report(tmp_path / "r.warplens").table("capture_windows", ["part", "number"]).to_pylist()
    assert [(row["part"], row["number"]) for row in rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_windows_follow_the_corrected_clock(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    clock = (1, 0, 0, 0, 1)
    sw.write(spool, sw.spool([sw.records(0, [sw.event("range", 20_000, 30_000)])], clock=clock))
    (spool / "control").write_bytes(sw.control([(20_000, 30_000, 3, 3, 0)], clock=clock))
    lines = [{"counter": t, "monotonic": t + t // 2, "realtime": t} for t in (10_000, 20_000, 40_000)]
    (spool / "clocks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    finish(spool, tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    for table in ("capture_windows", "nvtx_ranges"):
        assert [(row["start"], row["end"]) for row in report.table(table).to_pylist()] == [(30_000, 45_000)]


@pytest.mark.slow
def test_impossible_windows_and_no_more_of_them_are_told(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={})
    table = [(n + 1, n + 2, 3, 3, 0) for n in range(8191)]
    (spool / "control").write_bytes(sw.control([*table, (5, 3, 1, 1, 0)]))
    finish(spool, tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    assert report.tables["capture_windows"] == 8191
    notes = {row["code"]: row["count"] for row in report.diagnostics.to_pylist()}
    assert (notes["damaged-windows"], notes["no-more-windows"]) == (1, 8192)


def gated(
    tmp_path: Path,
    windows: list[tuple[int, int, int, int, int]],
    records: list[bytes],
    opened: Sequence[bytes] = (),
    **control: Any,
) -> Report:
    """Finish a recording of one process with a control file; its clock says when things were."""
    spool = tmp_path / "spool"
    chunks = [NAMES, sw.records(0, records), sw.open_table(0, opened)]
    sw.write(spool, sw.spool(chunks, {"pid": 10}, end_ns=control.pop("ended", 0)))
    (spool / "control").write_bytes(sw.control(windows, **control))
    finish(spool, tmp_path / "r.warplens")
    return open_report(tmp_path / "r.warplens")


def ranges(report: Report) -> list[tuple[int, int, bool, bool]]:
    rows = report.table("nvtx_ranges", ["start", "end", "unfinished", "clipped"]).to_pylist()
    return [tuple(row.values()) for row in rows]


def test_open_ranges_that_overlap_no_window_are_not_there(tmp_path: Path) -> None:
    """A crash at 900, with a stack that was tracked all the time: the windows were 200-300 and 500-600."""
    windows = [(200, 300, 3, 3, 0), (500, 600, 3, 3, 0)]
    stack = [sw.event("range", start, 0, 1) for start in (100, 250, 550, 600, 700)]
    report = gated(tmp_path, windows, [sw.event("mark", 890, name=2)], stack, ended=900)
    assert ranges(report) == [(100, 900, True, True), (250, 900, True, True), (550, 900, True, True)]


def test_open_ranges_inside_an_open_window_are_whole(tmp_path: Path) -> None:
    stack = [sw.event("range", start, 0, 1) for start in (100, 600)]
    report = gated(tmp_path, [(500, 0, 5, 0, 0)], [], stack, ended=900)
    assert ranges(report) == [(100, 900, True, True), (600, 900, True, False)]


def test_without_any_window_no_open_range_counts(tmp_path: Path) -> None:
    report = gated(tmp_path, [], [], [sw.event("range", 100, 0, 1)], ended=900)
    assert (ranges(report), report.tables["capture_windows"]) == ([], 0)


def test_records_with_any_time_are_kept(tmp_path: Path) -> None:
    """Deferred events may have times that the program gave."""
    report = gated(
        tmp_path, [(500, 600, 3, 3, 0)], [sw.event("mark", 100, name=2), sw.event("range", 800, 900, 1)]
    )
    assert (ranges(report), report.tables["nvtx_marks"]) == ([(800, 900, False, False)], 1)


RECORDER = [(400, 500, 1, 7, 0), (500, 0, 1, 0, 0)]


def test_a_flight_recorder_leaves_what_overlaps_a_window(tmp_path: Path) -> None:
    """Saved at 500 with 100 ns; ended at 1000, with 200 ns kept."""
    records = [
        sw.event("range", 100, 200, 1),  # older than what was saved
        sw.event("range", 100, 401, 1),
        sw.event("mark", 399, name=2),
        sw.event("mark", 400, name=2),
        sw.event("range", 450, 520, 1),
        sw.event("mark", 500, name=2),  # after the save, but older than 200 ns
        sw.event("range", 600, 700, 1),
        sw.event("range", 600, 801, 1),
        sw.event("range", 800, 800, 1),
        sw.event("range", 850, 860, 1),
        sw.event("sample", 700, category=1),
        sw.event("sample", 900, category=1),
        sw.operation(6, 700),
        sw.operation(6, 900),
    ]
    report = gated(tmp_path, RECORDER, records, [sw.event("range", 50, 0, 1)], keep_ns=200, ended=1000)
    assert ranges(report) == [
        (50, 1000, True, True),
        (100, 401, False, True),
        (450, 520, False, True),
        (600, 801, False, True),
        (800, 800, False, False),
        (850, 860, False, False),
    ]
    assert report.table("nvtx_marks", ["start"]).column(0).to_pylist() == [400]
    assert report.table("nvtx_counter_samples", ["start"]).column(0).to_pylist() == [900]
    assert report.table("nvtx_operations", ["start"]).column(0).to_pylist() == [900]
    windows = report.table("capture_windows").to_pylist()
    assert [(row["start"], row["end"], row["closed_by"]) for row in windows] == [
        (400, 500, "keep"),
        (800, 1000, "end"),
    ]
    assert "keep-last" in {row["code"] for row in report.diagnostics.to_pylist()}
    ids = report.table("nvtx_ranges", ["id"]).column(0).to_pylist()
    parents = report.table("nvtx_ranges", ["parent"]).column(0).to_pylist()
    assert set(parents) - {None} <= set(ids)


@pytest.mark.slow
def test_the_end_of_a_flight_is_what_the_launcher_noted_or_what_was_seen_last(tmp_path: Path) -> None:
    for end_ns, first in ((1500, 1300), (None, 700)):
        spool = tmp_path / f"spool{end_ns}"
        sw.write(spool, sw.spool([NAMES, sw.records(0, [sw.event("range", 800, 900, 1)])]))
        (spool / "control").write_bytes(sw.control([(100, 0, 1, 0, 0)], keep_ns=200))
        if end_ns:
            (spool / "launch.json").write_text(json.dumps({"start_ns": 100, "end_ns": end_ns}))
        finish(spool, tmp_path / f"{end_ns}.warplens")
        (row,) = open_report(tmp_path / f"{end_ns}.warplens").table("capture_windows").to_pylist()
        assert row["start"] == first


def test_a_window_cut_to_its_last_seconds_without_a_flight_recorder(tmp_path: Path) -> None:
    records = [sw.event("range", 100, 200, 1), sw.event("range", 300, 450, 1), sw.event("mark", 350, name=2)]
    report = gated(tmp_path, [(400, 500, 1, 7, 0)], records)
    assert (ranges(report), report.tables["nvtx_marks"]) == ([(300, 450, False, True)], 0)
    assert "keep-last" not in {row["code"] for row in report.diagnostics.to_pylist()}


@pytest.mark.parametrize("told", [False, True])
def test_the_limit_of_the_spool_is_told_once(tmp_path: Path, told: bool) -> None:
    spool = recording(
        tmp_path / "spool", launch={"diagnostics": [{"code": "max-size", "message": "so"}] if told else []}
    )
    (spool / "control").write_bytes(sw.control([(400, 0, 1, 0, 0)], max_bytes=5 << 20, over=3))
    finish(spool, tmp_path / "r.warplens")
    (note,) = [
        row
        for row in open_report(tmp_path / "r.warplens").diagnostics.to_pylist()
        if row["code"] == "max-size"
    ]
    assert (
        note["message"] == "so"
        if told
        else "--max-size (5 MiB): a file could not grow 3 times" in note["message"]
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_flight_recorder_agrees_with_an_oracle(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    edges = sorted(chance.sample(range(1, 2000), 12))
    windows = [(begin, end, 1, 7, 0) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    windows.insert(3, (windows[2][1], windows[2][1] + 1, 1, 7, 0))  # touches the one before it
    times = sorted(
        (start, start + chance.choice((0, 1, chance.randrange(400))))
        for start in (chance.randrange(2100) for _ in range(500))
    )
    around = {}
    for start, end in times:
        over = [window for window in windows if start < window[1] and (window[0] < end or window[0] <= start)]
        if over:
            around[start, end] = start < over[-1][0] or end > over[-1][1]
    by_end = sorted(times, key=lambda pair: pair[1])
    report = gated(
        tmp_path, windows, [sw.event("start_end", start, end, 1) for start, end in by_end], keep_ns=10**6
    )
    found = [(start, end, clipped) for start, end, _, clipped in ranges(report)]
    assert sorted(found) == sorted((*pair, around[pair]) for pair in times if pair in around)
    assert report.table("nvtx_ranges", ["id"]).column(0).to_pylist() == list(range(len(found)))
