"""intrakernel_sum: a small kernel by hand, and random ones against a plain reading of the rows."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.reports.kernel_story import Story, chance
from tests.support.thorough import examples
from warplens import catalog
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes

Row = dict[str, Any]


def asked(report: Report, selection: Selection | None = None, **options: Any) -> list[Row]:
    found: list[Row] = (
        catalog.find("stats.tables", "intrakernel_sum")
        .load()
        .table(report, selection or Selection(), **options)
        .to_pylist()
    )
    return found


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """Two launches of one kernel: a warp that loads, one that computes; the other kernel ran on another GPU."""
    story = Story()
    for begin in (0, 2000):
        launch = story.launch("gemm", begin, begin + 1000)
        launch.unit(0, 0, 5, begin, begin + 1000).region("tile", begin, begin + 800).region(
            "load", begin, begin + 400
        )
        launch.unit(0, 4, 5, begin + 100, begin + 900, dropped=3).region(
            "mma", begin + 500, begin + 900
        ).mark("done", begin + 900)
    story.launch(None, 4000, 4500, device=1, buffer_name="scores").unit(0, 0, 7, 4000, 4500).region(
        "load", 4100, 4200, "asynchronous"
    )
    return open_report(story.write(tmp_path / "r.warplens"))


def test_by_kernel_and_tag(report: Report) -> None:
    rows = asked(report)
    picked = ("Kernel", "Tag", "Kind", "Count", "Total Time (ns)", "Units", "Device")
    assert [tuple(row[name] for name in picked) for row in rows] == [
        ("gemm", "tile", "region", 2, 1600, 4, "GPU (0)"),
        ("gemm", "load", "region", 2, 800, 4, "GPU (0)"),
        ("gemm", "mma", "region", 2, 800, 4, "GPU (0)"),
        ("scores", "load", "asynchronous", 1, 100, 1, "GPU (1)"),
    ]
    assert [round(row["Unit Time (%)"], 3) for row in rows] == [
        44.444,
        22.222,
        22.222,
        20.0,
    ]  # of 3600 and 500


def test_parts(report: Report) -> None:
    by_warp = asked(report, by="warp")
    assert [
        (row["Warp"], row["Tag"], row["Unit Time (%)"]) for row in by_warp if row["Kernel"] == "gemm"
    ] == [
        (0, "tile", 80.0),
        (0, "load", 40.0),
        (4, "mma", 50.0),
    ]
    assert [(row["SM"], row["Tag"]) for row in asked(report, by="sm")] == [
        (5, "tile"),
        (5, "load"),
        (5, "mma"),
        (7, "load"),
    ]
    assert [(row["Launch"], row["Tag"]) for row in asked(report, by="launch")] == [
        *((launch, tag) for launch in (0, 1) for tag in ("tile", "load", "mma")),
        (2, "load"),
    ]
    assert [(row["Role"], row["Tag"]) for row in asked(report, by="role")][:3] == [
        ("warp 0", "tile"),
        ("warp 0", "load"),
        ("warp 4", "mma"),
    ]


def test_a_slash_names_the_role(tmp_path: Path) -> None:
    story = Story()
    launch = story.launch()
    launch.unit(0, 0, 0, 0, 100).region("producer/load", 0, 50)
    for warp in (4, 5, 6):
        launch.unit(0, warp, 0, 0, 100).region("consumer/mma", 0, 20).region("consumer/wait", 20, 60)
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        assert [(row["Role"], row["Tag"], row["Units"]) for row in asked(report, by="role")] == [
            ("consumer", "consumer/wait", 3),
            ("consumer", "consumer/mma", 3),
            ("producer", "producer/load", 1),
        ]


def test_dropped_records_are_noted(report: Report) -> None:
    table = catalog.find("stats.tables", "intrakernel_sum").load().table(report, Selection())
    assert notes(table) == ["6 records were dropped (slots=67 would hold all)."]


def test_a_filter_chooses_launches(report: Report) -> None:
    rows = asked(report, Selection(time=(2900, 3000)))
    assert [(row["Tag"], row["Count"]) for row in rows] == [("tile", 1), ("load", 1), ("mma", 1)]
    with pytest.raises(MissingData, match="in the selected part"):
        asked(report, Selection(time=(1500, 1600)))


@pytest.mark.slow
def test_missing_data_and_wrong_options_are_named(tmp_path: Path, report: Report) -> None:
    with pytest.raises(UsageError, match="by=thread"):
        asked(report, by="thread")
    with (
        open_report(Story().write(tmp_path / "none.warplens")) as none,
        pytest.raises(MissingData, match="does not contain in-kernel"),
    ):
        asked(none)
    story = Story()
    story.launch(stored=False)
    with (
        open_report(story.write(tmp_path / "lost.warplens")) as lost,
        pytest.raises(MissingData, match="see its diagnostics"),
    ):
        asked(lost)
    story = Story()
    story.launch().unit(0, 0, 0, 0, 10).mark("done", 5)
    with (
        open_report(story.write(tmp_path / "marks.warplens")) as marks,
        pytest.raises(MissingData, match="no regions"),
    ):
        asked(marks)


@pytest.mark.slow
@settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**6), by=st.sampled_from(["kernel", "launch", "sm", "warp"]))
def test_the_sums_equal_a_plain_count(tmp_path_factory: pytest.TempPathFactory, seed: int, by: str) -> None:
    story = chance(seed)
    lengths: dict[Any, list[int]] = defaultdict(list)
    spans: dict[Any, int] = defaultdict(int)
    for number, launch in enumerate(story.launches):
        for unit in launch.units:
            part = {"launch": number, "sm": unit.row["sm"], "warp": unit.row["warp"]}.get(by)
            where = (launch.row["name"] or "buffer 1", part)
            spans[where] += unit.row["end"] - unit.row["start"]
            for event in unit.events:
                if event["kind"] != "mark":
                    lengths[(*where, event["tag"], event["kind"])].append(event["end"] - event["start"])
    title = {"launch": "Launch", "sm": "SM", "warp": "Warp"}.get(by, "")
    with open_report(story.write(tmp_path_factory.mktemp("r") / "r.warplens")) as report:
        if not lengths:
            with pytest.raises(MissingData):
                asked(report, by=by)
            return
        rows = asked(report, by=by)
    assert len(rows) == len(lengths)
    for row in rows:
        where = (row["Kernel"], row.get(title))
        values = sorted(lengths[(*where, row["Tag"], row["Kind"])])
        assert (row["Count"], row["Total Time (ns)"]) == (len(values), sum(values))
        assert row["Avg (ns)"] == pytest.approx(statistics.fmean(values))
        assert row["Med (ns)"] == statistics.median(values)
        assert row["P99 (ns)"] == values[math.ceil(0.99 * len(values)) - 1]
        assert (row["Min (ns)"], row["Max (ns)"]) == (values[0], values[-1])
        assert row["Unit Time (%)"] == pytest.approx(100 * sum(values) / max(spans[where], 1))
