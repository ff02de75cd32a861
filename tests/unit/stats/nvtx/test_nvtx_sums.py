"""nvtx_sum, nvtx_pushpop_sum and nvtx_startend_sum against Python's own statistics."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from warplens import catalog
from warplens.analysis.ranges.durations import Durations
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

BLOCK = [
    "Time (%)",
    "Total Time (ns)",
    "Instances",
    "Avg (ns)",
    "Med (ns)",
    "Min (ns)",
    "Max (ns)",
    "StdDev (ns)",
]
PICTURE = """
main    |[step        ][step      ]
main    |  [load ]
w@io    |     [read         ]
p1/main |        {async   }
p1/main |  <open
"""


def compute(name: str, report: Report, selection: Selection | None = None) -> pa.Table:
    table: pa.Table = catalog.find("stats.tables", name).load().table(report, selection or Selection())
    return table


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(tmp_path / "r.warplens", PICTURE)
    return open_report(tmp_path / "r.warplens")


def test_the_columns_are_those_of_nsys(report: Report) -> None:
    assert compute("nvtx_sum", report).column_names == [*BLOCK, "Style", "Range"]
    assert compute("nvtx_pushpop_sum", report).column_names == [*BLOCK, "Range"]
    assert compute("nvtx_startend_sum", report).column_names == [*BLOCK, "Range"]


def test_the_greatest_total_comes_first_and_domains_are_named(report: Report) -> None:
    table = compute("nvtx_sum", report)
    assert table.column("Range").to_pylist() == [":step", ":open", "io:read", ":async", ":load"]
    assert table.column("Style").to_pylist() == ["PushPop", "PushPop", "PushPop", "StartEnd", "PushPop"]
    step = table.slice(0, 1).to_pylist()[0]
    assert (step["Total Time (ns)"], step["Instances"], step["Avg (ns)"], step["Med (ns)"]) == (
        26_000,
        2,
        13_000.0,
        13_000.0,
    )
    assert math.isclose(step["StdDev (ns)"], statistics.stdev([12_000, 14_000]))
    assert table.column("StdDev (ns)").to_pylist()[1:] == [0.0] * 4
    assert math.isclose(sum(table.column("Time (%)").to_pylist()), 100)


def test_each_style_has_its_own_table(report: Report) -> None:
    assert compute("nvtx_pushpop_sum", report).column("Range").to_pylist() == [
        ":step",
        ":open",
        "io:read",
        ":load",
    ]
    assert compute("nvtx_startend_sum", report).column("Range").to_pylist() == [":async"]


def test_unfinished_ranges_are_counted_and_noted(report: Report) -> None:
    assert notes(compute("nvtx_sum", report)) == [
        "1 unfinished, counted up to when the process was last seen."
    ]
    assert notes(compute("nvtx_startend_sum", report)) == []


def test_a_filter_keeps_overlapping_ranges_whole(report: Report) -> None:
    table = compute("nvtx_sum", report, Selection.parse("9us/10us"))
    found = dict(zip(table.column("Range").to_pylist(), table.column("Max (ns)").to_pylist(), strict=True))
    assert set(found) == {":step", "io:read", ":async", ":open"}
    assert found[":step"] == 14_000


def test_a_report_without_such_ranges_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    report = open_report(tmp_path / "r.warplens")
    with pytest.raises(MissingData, match=r"^does not contain NVTX start/end range data\.$"):
        compute("nvtx_startend_sum", report)
    with pytest.raises(MissingData, match="in the selected part"):
        compute("nvtx_sum", report, Selection.parse("1s/2s"))


NAMES = st.one_of(st.none(), st.sampled_from(["a", "b", "ü:|\n", ""]))
# Around 2^32 ns, where the native code changes its representation, and far beyond.
LENGTHS = st.one_of(st.integers(0, 50), st.integers(2**32 - 3, 2**32 + 3), st.integers(0, 2**45))
ROWS = st.lists(st.tuples(st.sampled_from(["PushPop", "StartEnd"]), NAMES, NAMES, LENGTHS), max_size=60)


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ROWS, min_size=1, max_size=3))
def test_group_statistics_are_exact(parts: list[list[tuple[str, str | None, str | None, int]]]) -> None:
    expected: dict[tuple[str, str | None, str | None], list[int]] = defaultdict(list)
    with Durations() as durations:
        for rows in parts:
            for style, domain, message, length in rows:
                expected[style, domain, message].append(length)
            columns = [pa.array([row[k] for row in rows], pa.string()).dictionary_encode() for k in range(3)]
            start = pa.array(range(len(rows)), pa.int64())
            end = pa.array([n + row[3] for n, row in enumerate(rows)], pa.int64())
            durations.add(
                pa.table([start, end, *columns], names=["start", "end", "style", "domain", "message"])
            )
        result = durations.result().to_pylist()
    assert len(result) == len(expected)
    for row in result:
        values = expected[row["style"], row["domain"], row["message"]]
        assert (row["count"], row["total"], row["min"], row["max"]) == (
            len(values),
            sum(values),
            min(values),
            max(values),
        )
        assert row["median"] == statistics.median(values)
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        assert math.isclose(row["stddev"], deviation, rel_tol=1e-9, abs_tol=1e-6)


@pytest.mark.slow
def test_many_values_of_one_group_keep_their_median() -> None:
    lengths = [(n * 7919) % 100_003 for n in range(200_000)]
    with Durations() as durations:
        for first in range(0, len(lengths), 50_000):
            part = lengths[first : first + 50_000]
            texts = {name: pa.array(["x"] * len(part)) for name in ("style", "domain", "message")}
            durations.add(pa.table({"start": pa.array([0] * len(part)), "end": pa.array(part), **texts}))
        row = durations.result().to_pylist()[0]
    assert (row["median"], row["count"], row["total"]) == (
        statistics.median(lengths),
        len(lengths),
        sum(lengths),
    )


def test_operators_of_a_framework_are_counted_and_left_out(tmp_path: Path) -> None:
    picture = "main |[step         ]\nmain@pytorch | [aten::mm ][aten::add]"
    place = {"process": 0, "thread": 0, "start": 1_000_000_000, "end": 1_000_004_000}
    ops = [{**place, "range": number, "name": name} for number, name in ((1, "aten::mm"), (2, "aten::add"))]
    for name, drawn in (("both", picture), ("operators", picture.partition("\n")[2])):
        timeline(tmp_path / f"{name}.warplens", drawn, tables={"ops": ops})
    with open_report(tmp_path / "both.warplens") as report:
        table = compute("nvtx_sum", report)
        assert table.column("Range").to_pylist() == [":step"]
        assert notes(table) == ["2 operators of PyTorch: see op_sum."]
    with (
        open_report(tmp_path / "operators.warplens") as report,
        pytest.raises(MissingData, match="NVTX data; op_sum has its 2 operators"),
    ):
        compute("nvtx_sum", report)


def test_three_thousand_groups_stay_apart() -> None:
    names = [f"n{n % 3000}" for n in range(9000)]
    with Durations() as durations:
        texts = {
            "style": pa.array(["PushPop"] * 9000),
            "domain": pa.nulls(9000, pa.string()),
            "message": pa.array(names),
        }
        durations.add(pa.table({"start": pa.array([0] * 9000), "end": pa.array(range(9000)), **texts}))
        rows = durations.result().to_pylist()
    assert len(rows) == 3000
    assert all(row["median"] == int(row["message"][1:]) + 3000 for row in rows)
