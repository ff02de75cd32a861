"""critical_path and critical_path_trace on drawn timelines whose path can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.analysis.simulated import LATENCY, program, run, write
from tests.unit.stats.asking import stat
from tests.unit.stats.drawing import line, op
from warplens import catalog
from warplens.analysis.critical_path import syncs
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


TICK, ORIGIN = 1_000, 1_000_000_000
Row = dict[str, Any]


def drawn(path: Path, *lines: str, **more: Any) -> Report:
    timeline(path / "r.warplens", "\n".join(lines), tick_ns=TICK, origin=ORIGIN, **more)
    return open_report(path / "r.warplens")


def said(report: Report, **options: Any) -> str:
    return " ".join(
        notes(catalog.find("stats.tables", "critical_path").load().table(report, Selection(), **options))
    )


def trace(
    report: Report, selection: Selection | None = None, **options: Any
) -> list[tuple[int, int, str, str]]:
    rows = stat(report, "critical_path_trace", selection, **options)
    return [
        (row["Start (ns)"] // TICK, row["Duration (ns)"] // TICK, row["Kind"], row["Name"]) for row in rows
    ]


def test_the_host_the_gpu_and_back(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        line("main", (0, 110, "[step")),
        line("main", (0, 20, "[load")),
        line("main:api", (20, 42, "(cudaLaunchKernel#1"), (50, 90, "(cudaDeviceSynchronize")),
        line("gpu0.7", (30, 80, "(gemm#1")),
        line("gpu0.8", (45, 60, "(alone")),
    )
    assert trace(report) == [
        (0, 20, "CPU", ":load"),
        (20, 10, "launch latency", "[launch latency]"),
        (30, 50, "kernel", "gemm"),
        (80, 10, "sync return", "cudaDeviceSynchronize"),
        (90, 20, "CPU", ":step"),
    ]
    rows = {(row["Kind"], row["Name"]): row for row in stat(report, "critical_path")}
    assert sum(row["Time (ns)"] for row in rows.values()) == 110 * TICK
    gemm = rows["kernel", "gemm"]
    # Without it the calls decide: up to 42, 8 more, and the wait comes back at once.
    assert (gemm["Time (ns)"] // TICK, gemm["Pieces"], gemm["Gain (ns)"] // TICK) == (
        50,
        1,
        90 - 50 - (60 + 10 - 50),
    )
    assert ("kernel", "alone") not in rows
    assert rows["CPU", ":load"]["Gain (ns)"] == 20 * TICK
    assert "-20,000 ns" in said(report, what_if="load")
    assert "+50,000 ns" in said(report, what_if="gemm", factor=2.0)
    assert {row["Kind"]: row["Time (ns)"] // TICK for row in stat(report, "critical_path", by="kind")} == {
        "CPU": 40,
        "launch latency": 10,
        "kernel": 50,
        "sync return": 10,
    }
    assert {row["Range"]: row["Time (ns)"] // TICK for row in stat(report, "critical_path", by="range")} == {
        ":load": 20,
        ":step": 90,
    }
    assert [
        (row["Thread"], row["Stream"], row["Time (ns)"] // TICK)
        for row in stat(report, "critical_path", by="place")
    ] == [
        (None, 7, 60),
        ("main", None, 50),
    ]


def test_hidden_work_has_slack(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        line(
            "main:api",
            (0, 21, "(cudaLaunchKernel#1"),
            (21, 42, "(cudaLaunchKernel#2"),
            (42, 100, "(cudaDeviceSynchronize"),
        ),
        line("gpu0.7", (22, 90, "(gemm#1")),
        line("gpu0.8", (43, 60, "(gemm#2")),
    )
    rows = {(row["Kind"], row["Name"]): row for row in stat(report, "critical_path")}
    gemm = rows["kernel", "gemm"]
    assert (gemm["Time (ns)"] // TICK, gemm["All (ns)"] // TICK, gemm["Slack (ns)"] // TICK) == (
        68,
        68 + 17,
        30,
    )


def test_a_stream_that_waits_for_an_event(tmp_path: Path) -> None:
    waits = {
        "id": 1,
        "process": 0,
        "start": ORIGIN + 18 * TICK,
        "end": ORIGIN + 27 * TICK,
        "kind": "Stream wait event",
        "stream": 8,
    }
    report = drawn(
        tmp_path,
        line(
            "main:api",
            (0, 9, "(cuA#1"),
            (9, 22, "(cuRecord#2"),
            (22, 31, "(cuWait#3"),
            (31, 40, "(cuB#4"),
            (40, 100, "(cuCtxSynchronize"),
        ),
        line("gpu0.7", (5, 70, "(first#1")),
        line("gpu0.8", (70, 95, "(second#4")),
        "gpu0.7 |          !5#2",
        tables={"syncs": [{**waits, "event": 5, "api": 2, "context": 1}]},
    )
    assert [row[2:] for row in trace(report)] == [
        ("launch latency", "[launch latency]"),
        ("kernel", "first"),
        ("kernel", "second"),
        ("sync return", "cuCtxSynchronize"),
    ]


def test_the_engine_works_while_the_caller_waits(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        line("main", (0, 120, "[step")),
        line("main:api", (10, 30, "(cudaLaunchKernel#1"), (100, 119, "(cudaMemsetAsync#3")),
        line("engine:api", (50, 70, "(cudaLaunchKernel#2")),
        line("gpu0.7", (15, 20, "(forward#1"), (60, 65, "(backward#2"), (105, 112, "(memset#3")),
        tables={"ops": [op("aten::mm", 0, 8, 31, 0), op("MmBackward0", 1, 40, 90, 1, backward=True)]},
    )
    assert trace(report) == [
        (0, 10, "CPU", ":step"),
        (10, 20, "CUDA API", "cudaLaunchKernel"),
        (30, 10, "CPU", ":step"),
        (40, 10, "CPU", "[no range]"),
        (50, 20, "CUDA API", "cudaLaunchKernel"),
        (70, 20, "CPU", "[no range]"),
        (90, 10, "CPU", ":step"),
        (100, 19, "CUDA API", "cudaMemsetAsync"),
        (119, 1, "CPU", ":step"),
    ]


def test_a_rank_that_comes_late(tmp_path: Path) -> None:
    about = {"name": "all_reduce", "group": "0", "sequence": 1}
    base = 1 << 32
    rows = [
        {"id": 0, "process": 0, "start": ORIGIN + 30 * TICK, "end": ORIGIN + 90 * TICK, "kernel": 0, **about},
        {
            "id": base,
            "process": 1,
            "start": ORIGIN + 70 * TICK,
            "end": ORIGIN + 88 * TICK,
            "kernel": base,
            **about,
        },
    ]
    report = drawn(
        tmp_path,
        line("a/main:api", (0, 25, "(cudaLaunchKernel#1"), (25, 95, "(cudaDeviceSynchronize")),
        line("a/gpu0.7", (30, 90, "(ncclDevKernel#1")),
        line("b/main:api", (40, 65, "(cudaLaunchKernel#1"), (65, 92, "(cudaDeviceSynchronize")),
        line("b/gpu0.7", (70, 88, "(ncclDevKernel#1")),
        line("b/main", (0, 95, "[late")),
        tables={"collectives": rows},
        ranks={"a": 0, "b": 1},
    )
    # What the first rank spends in the kernel is a wait for the second one, that is: for what that did before.
    found = [
        (row["Start (ns)"] // TICK, row["Duration (ns)"] // TICK, row["Kind"], row["Rank"])
        for row in stat(report, "critical_path_trace")
    ]
    assert found in (
        [
            (0, 40, "CPU", 1),
            (40, 30, "launch latency", 1),
            (70, 20, "communication", 0),
            (90, 5, "sync return", 0),
        ],
        [
            (0, 40, "CPU", 1),
            (40, 30, "launch latency", 1),
            (70, 18, "communication", 1),
            (88, 4, "sync return", 1),
            (92, 3, "CPU", 1),
        ],
    )


def test_a_thread_that_looks_after_others_decides_nothing(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        line("main:api", (0, 20, "(cudaLaunchKernel#1"), (20, 80, "(cudaDeviceSynchronize")),
        line(
            "watchdog:api",
            (5, 20, "(cudaEventQuery"),
            (60, 75, "(cudaEventQuery"),
            (100, 115, "(cudaEventQuery"),
        ),
        line("gpu0.7", (10, 70, "(gemm#1")),
        line("gpu0.8", (30, 60, "(lost")),
    )
    assert sum(row["Time (ns)"] for row in stat(report, "critical_path")) == 80 * TICK
    # What nobody is known to have launched stays where it is, and the device is waited for until it is done.
    assert "-10,000 ns" in said(report, what_if="gemm")


def test_launches_into_a_full_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncs, "_QUEUED", 2)
    # The fourth launch has to wait until the second kernel has begun, the fifth for the third.
    report = drawn(
        tmp_path,
        line(
            "main:api",
            (0, 20, "(cudaLaunchKernel#1"),
            (20, 40, "(cudaLaunchKernel#2"),
            (40, 60, "(cudaLaunchKernel#3"),
        ),
        line("main:api", (60, 102, "(cudaLaunchKernel#4"), (102, 162, "(cudaLaunchKernel#5")),
        line(
            "gpu0.7",
            (10, 70, "(gemm#1"),
            (70, 140, "(gemm#2"),
            (140, 200, "(gemm#3"),
            (200, 230, "(gemm#4"),
            (230, 240, "(relu#5"),
        ),
    )
    assert {row["Kind"]: row["Time (ns)"] // TICK for row in stat(report, "critical_path", by="kind")} == {
        "launch latency": 10,
        "kernel": 230,
    }
    # With kernels of no length the five calls decide: those that waited take as long as the others.
    assert "100,000 ns instead of 240,000 ns" in said(report, what_if="gemm")
    cut = {
        row["Kind"]: row["Time (ns)"] // TICK
        for row in stat(report, "critical_path", by="kind", selection=Selection((0, 162 * TICK)))
    }
    assert cut == {"launch latency": 10, "kernel": 60 + 70, "full queue": 22}


def test_one_step_alone_and_windows(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        line("main", (0, 40, "[step"), (50, 100, "[step")),
        line(
            "main:api",
            (5, 26, "(cudaLaunchKernel#1"),
            (55, 76, "(cudaLaunchKernel#2"),
            (76, 99, "(cudaStreamSynchronize"),
        ),
        line("gpu0.7", (10, 60, "(gemm#1"), (60, 90, "(gemm#2")),
    )
    assert trace(report, step=1) == [
        (50, 10, "kernel", "gemm"),
        (60, 30, "kernel", "gemm"),
        (90, 9, "sync return", "cudaStreamSynchronize"),
        (99, 1, "CPU", ":step"),
    ]
    assert sum(row["Time (ns)"] for row in stat(report, "critical_path", step=0)) == 40 * TICK
    assert (
        sum(
            row["Time (ns)"]
            for row in stat(report, "critical_path", selection=Selection((20 * TICK, 70 * TICK)))
        )
        == 50 * TICK
    )
    with report.between(ORIGIN + 20 * TICK, ORIGIN + 70 * TICK) as part:
        assert stat(part, "critical_path")
    with pytest.raises(MissingData, match="training step 7; it has 2"):
        stat(report, "critical_path", step=7)


def test_missing_data_is_named(tmp_path: Path) -> None:
    report = drawn(tmp_path, line("main", (0, 40, "[step")))
    with pytest.raises(MissingData, match="does not contain CUDA data"):
        stat(report, "critical_path")
    report = drawn(tmp_path / "other", line("gpu0.7", (10, 60, "(gemm"), (60, 90, "(gemm")))
    assert trace(report) == [(10, 50, "kernel", "gemm"), (60, 30, "kernel", "gemm")]
    assert "2 operations have no call" in said(report)
    with pytest.raises(UsageError, match=r"what-if=nosuch"):
        said(report, what_if="nosuch")
    with pytest.raises(UsageError, match=r"is negative"):
        said(report, what_if="gemm", factor=-1.0)
    with pytest.raises(UsageError, match="choose from: name, kind, place, range"):
        stat(report, "critical_path", by="color")


def test_rows_are_whole_on_a_random_program(tmp_path: Path) -> None:
    import random

    threads = program(random.Random(3), processes=2, collectives=True)
    happened = run(threads)
    report = open_report(write(tmp_path / "r.warplens", happened, threads, ranks={"p0": 0, "p1": 1}))
    for by in ("name", "kind", "place", "range"):
        assert sum(row["Time (ns)"] for row in stat(report, "critical_path", by=by, rows=0)) == happened.end
    first = stat(report, "critical_path", rows=2)
    assert len(first) == 2
    assert first[0]["Gain (ns)"] <= first[0]["Time (ns)"]
    assert "rows left out" in said(report, rows=2)
    latency = next(
        row for row in stat(report, "critical_path", by="kind", rows=0) if row["Kind"] == "launch latency"
    )
    assert latency["Time (ns)"] == LATENCY * latency["Pieces"]
