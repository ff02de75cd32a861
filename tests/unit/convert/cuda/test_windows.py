"""Windows of the capture: calls count when they overlap one, work when it was launched in one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.convert.cuda.spools import Finished, Rows, api, report, work
from warplens.convert.finish import snapshot
from warplens.handover import pending
from warplens.testing import spool_writer as sw

WINDOW = [(1_000, 2_000, 2, 2, 0)]
TWO = [(1_000, 2_000, 2, 2, 0), (5_000, 6_000, 2, 2, 0)]
AFTER_START = {"process": {"start_ns": 100}}
CALLS = [
    api(1, 900, 999),
    api(2, 950, 1_001),
    api(3, 1_500, 1_600),
    api(4, 1_999, 2_100),
    api(5, 2_000, 2_100),
]


def captured(tmp_path: Path, wide: Mapping[str, Rows], windows: list[Any], **more: Any) -> Finished:
    return report(tmp_path, wide, control=sw.control(windows), **{**AFTER_START, **more})


def test_calls_that_overlap_a_window(tmp_path: Path) -> None:
    found = captured(tmp_path, {"cuda_api": CALLS}, WINDOW)
    assert [row["correlation"] for row in found["cuda_api"]] == [2, 3, 4]
    assert [row["id"] for row in found["cuda_api"]] == [0, 1, 2]


@pytest.mark.parametrize("kind", ["cuda_kernel", "cuda_memcpy", "cuda_memset", "cuda_graph"])
def test_work_that_was_launched_in_a_window(tmp_path: Path, kind: str) -> None:
    ran = [
        work(1, 1_100, 1_200),
        work(2, 1_300, 1_400),
        work(3, 1_700, 1_800),
        work(4, 7_000, 8_000),
        work(5, 8_000, 9_000),
    ]
    found = captured(tmp_path, {"cuda_api": CALLS, kind: ran}, WINDOW)
    table = {
        "cuda_kernel": "kernels",
        "cuda_memcpy": "memcpys",
        "cuda_memset": "memsets",
        "cuda_graph": "graphs",
    }[kind]
    assert found.columns(table, "correlation", "api", "start") == [(3, 1, 1_700), (4, 2, 7_000)]


def test_without_records_of_calls_times_on_the_gpu_decide(tmp_path: Path) -> None:
    ran = [work(1, 500, 1_000), work(2, 500, 1_001), work(3, 1_999, 9_000), work(4, 2_000, 9_000)]
    found = captured(tmp_path, {"cuda_kernel": ran}, WINDOW)
    assert [row["correlation"] for row in found["kernels"]] == [2, 3]


def test_a_call_that_was_lost_lay_between_those_with_the_numbers_around_it(tmp_path: Path) -> None:
    calls = [api(10, 1_100, 1_110), api(20, 1_900, 1_910), api(30, 5_100, 5_110), api(40, 5_900, 5_910)]
    ran = {
        5: 1_050,  # before all calls: the process began before the window, and all calls in there were recorded
        15: 9_000,  # between two of the first window
        25: 1_950,  # after the last of the first window, and it ran in there
        26: 9_000,  # between the windows
        35: 9_000,  # in the second window
        45: 5_950,  # after the last call, and it ran in the window
        46: 9_000,  # after the last call: not known
    }
    found = captured(
        tmp_path, {"cuda_api": calls, "cuda_kernel": [work(*one, one[1] + 1) for one in ran.items()]}, TWO
    )
    assert sorted(row["correlation"] for row in found["kernels"]) == [15, 25, 35, 45]


def test_a_process_that_began_in_the_window_launched_everything_there(tmp_path: Path) -> None:
    wide = {
        "cuda_api": [api(10, 1_200, 1_210)],
        "cuda_kernel": [work(5, 9_000, 9_001), work(15, 9_500, 9_501)],
    }
    found = captured(tmp_path, wide, [(50, 0, 1, 0, 0)])
    assert [row["correlation"] for row in found["kernels"]] == [5, 15]


def test_work_of_no_call_counts_by_its_own_time(tmp_path: Path) -> None:
    found = captured(
        tmp_path, {"cuda_api": CALLS, "cuda_kernel": [work(0, 1_990, 2_500), work(0, 2_000, 2_500)]}, WINDOW
    )
    assert [row["start"] for row in found["kernels"]] == [1_990]


def test_waits_memory_and_overhead_count_by_time(tmp_path: Path) -> None:
    wide: dict[str, Rows] = {
        "cuda_sync": [{"kind": 3, "start": 900, "end": 1_001}, {"kind": 3, "start": 2_000, "end": 2_100}],
        "cuda_overhead": [{"start": 900, "end": 1_000}, {"start": 1_900, "end": 3_000}],
        "cuda_um": [{"kind": 3, "start": 999}, {"kind": 3, "start": 1_000}],
        "cuda_memory": [
            {"operation": 1, "start": time, "address": time, "bytes": 10, "memory_kind": 3}
            for time in (500, 1_000, 1_999, 2_000)
        ],
    }
    found = captured(tmp_path, wide, WINDOW)
    assert [row["start"] for row in found["syncs"]] == [900]
    assert [row["start"] for row in found["overhead"]] == [1_900]
    assert [row["start"] for row in found["um_events"]] == [1_000]
    assert found.columns("gpu_memory", "start", "total") == [(1_000, 20), (1_999, 30)]


def test_events_and_external_ids_go_with_their_calls(tmp_path: Path) -> None:
    events = [
        {"correlation": 1, "event": 3, "start": 1_100},
        {"correlation": 3, "event": 3},
        {"correlation": 4, "event": 4, "start": 9_000},
    ]
    external = [
        {"correlation": correlation, "external": 100 + correlation, "kind": 3}
        for correlation in (5, 3, 1, 77)
    ]
    found = captured(tmp_path, {"cuda_api": CALLS, "cuda_event": events, "cuda_external": external}, WINDOW)
    assert found.columns("cuda_events", "start", "api") == [(1_500, 1), (9_000, 2)]
    assert found.columns("external_ids", "external", "correlation", "api", "kind") == [(103, 3, 1, "custom0")]


def test_a_flight_recorder_keeps_calls_of_the_last_seconds(tmp_path: Path) -> None:
    wide = {"cuda_api": CALLS, "cuda_kernel": [work(3, 1_700, 1_800), work(4, 2_500, 2_600)]}
    found = report(
        tmp_path, wide, control=sw.control([(100, 0, 1, 0, 0)], keep_ns=200), end_ns=2_150, **AFTER_START
    )
    assert [row["correlation"] for row in found["cuda_api"]] == [4, 5]
    assert [row["correlation"] for row in found["kernels"]] == [4]


def test_a_snapshot_has_what_there_was_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report_path = tmp_path / "r.warplens"
    spool = report_path / "spool" / "one"
    chunks = [
        sw.wide("cuda_api", CALLS),
        sw.wide("cuda_kernel", [work(3, 1_700, 1_800), work(5, 2_500, 2_600)]),
    ]
    sw.write(spool, sw.spool(chunks))
    note = pending.adopt(report_path, spool, "one")
    monkeypatch.setattr("warplens.convert.finish.time.monotonic_ns", lambda: 1_900)
    snapshot(note)
    (file,) = (report_path / "tables" / "kernels").glob("*.parquet")
    found = Finished(report_path)
    assert file.name.endswith(".s1.parquet")
    assert [row["correlation"] for row in found["kernels"]] == [3]
    assert [row["correlation"] for row in found["cuda_api"]] == [1, 2, 3]
