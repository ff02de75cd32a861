"""op_sum and op_kern_sum on a drawn report, and on random ones against going through every pair."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from tests.unit.stats.asking import stat
from tests.unit.stats.drawing import line
from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


TICK, ORIGIN = 1_000, 1_000_000_000
Row = dict[str, Any]


def op(
    name: str,
    first: int,
    last: int,
    number: int,
    *,
    thread: int = 0,
    shapes: str | None = None,
    process: int = 0,
) -> Row:
    times = {"start": ORIGIN + first * TICK, "end": ORIGIN + last * TICK}
    return {
        "range": 9_000 + number,
        "process": process,
        "thread": thread,
        **times,
        "name": name,
        "shapes": shapes,
    }


@pytest.fixture
def report(tmp_path: Path) -> Report:
    picture = [
        line(
            "main:api",
            (10, 30, "(cudaLaunchKernel#1"),
            (40, 60, "(cudaLaunchKernel#2"),
            (62, 82, "(cudaLaunchKernel#3"),
        ),
        line("main:api", (110, 130, "(cudaLaunchKernel#4"), (140, 160, "(cudaLaunchKernel#5")),
        line(
            "gpu0.7",
            (20, 50, "(gemm#1"),
            (50, 70, "(relu#2"),
            (130, 140, "(outside#4"),
            (145, 155, "(gemm#5"),
        ),
        line("gpu0.8", (65, 85, "(relu#3")),
    ]
    ops = [
        op("aten::linear", 5, 100, 0, shapes="[[64,8]]"),
        op("aten::mm", 8, 35, 1, shapes="[[64,8]]"),
        op("aten::relu", 38, 90, 2, shapes="[[64]]"),
        op("aten::relu", 61, 85, 3, shapes="[[64]]"),
        op("aten::mm", 135, 165, 4, shapes="[[32,8]]"),
    ]
    timeline(tmp_path / "r.warplens", "\n".join(picture), tick_ns=TICK, origin=ORIGIN, tables={"ops": ops})
    return open_report(tmp_path / "r.warplens")


def test_operations_have_self_and_total_times(report: Report) -> None:
    columns = ("Calls", "CPU Self (ns)", "CPU Total (ns)", "GPU Self (ns)", "GPU Total (ns)", "Launches")
    found = {
        row["Op"]: tuple(row[name] // (TICK if "ns" in name else 1) for name in columns)
        for row in stat(report, "op_sum")
    }
    assert found == {
        "aten::linear": (1, 95 - 27 - 52, 95, 0, 65, 0),
        "aten::mm": (2, 27 + 30, 27 + 30, 30 + 10, 30 + 10, 2),
        "aten::relu": (2, 52, 52, 35, 35, 2),  # one in the other; the two kernels overlap by 5
    }
    apart = [(row["Op"], row["Shapes"], row["Calls"]) for row in stat(report, "op_sum", shapes=True)]
    assert apart == [
        ("aten::relu", "[[64]]", 2),
        ("aten::mm", "[[64,8]]", 1),
        ("aten::mm", "[[32,8]]", 1),
        ("aten::linear", "[[64,8]]", 1),
    ]


def test_without_launches_there_are_no_columns_of_zeros(tmp_path: Path) -> None:
    timeline(
        tmp_path / "r.warplens",
        "main |[step                     ]",
        tick_ns=TICK,
        origin=ORIGIN,
        tables={"ops": [op("aten::mm", 2, 12, 0), op("aten::relu", 14, 16, 1)]},
    )
    with open_report(tmp_path / "r.warplens") as report:
        rows = stat(report, "op_sum")
    assert [*rows[0]] == ["Time (%)", "Calls", "CPU Self (ns)", "CPU Total (ns)", "Op"]
    assert [row["Op"] for row in rows] == ["aten::mm", "aten::relu"]


def test_which_kernels_they_launch(report: Report) -> None:
    own = [
        (row["Op"], row["Kernel Name"], row["Instances"], row["Total Time (ns)"] // TICK)
        for row in stat(report, "op_kern_sum")
    ]
    assert own == [("aten::mm", "gemm", 2, 40), ("aten::relu", "relu", 2, 40)]
    every = {
        (row["Op"], row["Kernel Name"]): row["Instances"]
        for row in stat(report, "op_kern_sum", inclusive=True)
    }
    assert every == {
        ("aten::mm", "gemm"): 2,
        ("aten::relu", "relu"): 2,
        ("aten::linear", "gemm"): 1,
        ("aten::linear", "relu"): 2,
    }
    late = stat(report, "op_kern_sum", Selection((110 * TICK, 200 * TICK)), shapes=True)
    assert [(row["Op"], row["Shapes"], row["Instances"]) for row in late] == [("aten::mm", "[[32,8]]", 1)]


def test_reports_without(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]", tables={"ops": [op("aten::mm", 1, 3, 0)]})
    with open_report(tmp_path / "r.warplens") as report:
        assert stat(report, "op_sum")[0]["Time (%)"] == 100.0
        with pytest.raises(MissingData, match="does not contain GPU work"):
            stat(report, "op_kern_sum")
        assert (
            "record_shapes"
            in notes(catalog.find("stats.tables", "op_sum").load().table(report, Selection(), shapes=True))[0]
        )
        with pytest.raises(MissingData, match="nvtx_kern_sum"):
            stat(report, "op_sum", Selection((10**9, 2 * 10**9)))


@pytest.mark.parametrize("seed", few(range(8), 3))
def test_random_operations_against_every_pair(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    names = ("aten::mm", "aten::add", "aten::linear")
    ops: list[Row] = []

    def nest(thread: int, begin: int, end: int, depth: int) -> None:
        while begin < end and depth < 4:
            first = rng.randrange(begin, end)
            last = rng.randint(first + 1, end)
            ops.append(op(rng.choice(names), first, last, len(ops), thread=thread))
            nest(thread, first, last, depth + 1)
            begin = last + 1

    for thread in (0, 1):
        nest(thread, 0, 400, 0)
    calls = {thread: sorted(rng.sample(range(0, 396, 4), 30)) for thread in (0, 1)}
    tables: dict[str, list[Row]] = {
        "cuda_api": [],
        "kernels": [],
        "ops": sorted(ops, key=lambda row: row["start"]),
    }
    place = {"process": 0, "device": 0, "context": 1, "stream": 7}
    size = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
    for number, (thread, at) in enumerate((key, at) for key, times in calls.items() for at in times):
        start = ORIGIN + at * TICK
        about = {
            "process": 0,
            "thread": thread,
            "api": "runtime",
            "name": "cudaLaunchKernel",
            "result": 0,
            "correlation": number,
        }
        tables["cuda_api"].append({**about, "id": number, "start": start, "end": start + 2 * TICK})
        kernel = rng.choice(("gemm", "relu"))
        ran = {
            "start": start + TICK,
            "end": start + TICK * rng.randrange(2, 9),
            "name": kernel,
            "demangled": kernel,
            "api": number,
        }
        tables["kernels"].append(
            {**place, **size, **ran, "id": number, "registers": 1, "static_shared": 0, "dynamic_shared": 0}
        )
    for name in ("cuda_api", "kernels"):
        tables[name].sort(key=lambda row: row["start"])
    timeline(tmp_path / "r.warplens", "main |!a\nother |!b", tick_ns=TICK, origin=ORIGIN, tables=tables)
    own: dict[tuple[str, str], int] = defaultdict(int)
    every: dict[tuple[str, str], int] = defaultdict(int)
    launched = {row["id"]: row for row in tables["cuda_api"]}
    for kernel_row in tables["kernels"]:
        call = launched[kernel_row["api"]]
        around = [
            row
            for row in ops
            if row["thread"] == call["thread"] and row["start"] <= call["start"] < row["end"]
        ]
        if around:
            innermost = max(around, key=lambda row: (row["start"], -row["end"], row["range"]))
            length = kernel_row["end"] - kernel_row["start"]
            own[innermost["name"], kernel_row["name"]] += length
            for name in {row["name"] for row in around}:
                every[name, kernel_row["name"]] += length
    with open_report(tmp_path / "r.warplens") as report:
        for inclusive, expected in ((False, own), (True, every)):
            rows = stat(report, "op_kern_sum", inclusive=inclusive)
            assert {(row["Op"], row["Kernel Name"]): row["Total Time (ns)"] for row in rows} == expected
        summed = stat(report, "op_sum")
        assert sum(row["CPU Self (ns)"] for row in summed) == sum(
            len(
                {
                    tick
                    for row in ops
                    if row["thread"] == thread
                    for tick in range(row["start"], row["end"], TICK)
                }
            )
            * TICK
            for thread in (0, 1)
        )
