"""intrakernel_timeline: a launch by hand, and random ones against one nanosecond after the other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.kernel_story import Story, chance
from warplens import catalog
from warplens.errors import MissingData, UsageError
from warplens.report import Selection
from warplens.report import open as open_report


def asked(path: Path, story: Story, **options: Any) -> list[dict[str, Any]]:
    with open_report(story.write(path / "r.warplens")) as report:
        found: list[dict[str, Any]] = (
            catalog.find("stats.tables", "intrakernel_timeline")
            .load()
            .table(report, Selection(), **options)
            .to_pylist()
        )
    return found


def test_a_launch_by_hand(tmp_path: Path) -> None:
    story = Story()
    story.launch("short", 0, 100)
    launch = story.launch("gemm", 1000, 1400)
    launch.unit(0, 0, 0, 1000, 1400).region("load", 1000, 1150).region("load", 1160, 1180).mark("done", 1400)
    launch.unit(1, 0, 1, 1000, 1200).region("load", 1000, 1050).region("mma", 1100, 1200)
    rows = asked(tmp_path, story, slices=4)
    assert {row["Launch"] for row in rows} == {1}
    assert [
        (row["Start (ns)"], row["Tag"], row["Active"], row["Units"], row["Running"], row["Active (%)"])
        for row in rows
    ] == [
        (0, "load", 1.5, 2, 2.0, 75.0),
        (100, "load", 0.7, 1, 2.0, 35.0),
        (100, "mma", 1.0, 1, 2.0, 50.0),
    ]


def test_bad_options(tmp_path: Path) -> None:
    story = Story()
    story.launch("gemm").unit(0, 0, 0, 0, 100).mark("done", 5)
    for options in ({"slices": 0}, {"launch": 7}):
        with pytest.raises(UsageError):
            asked(tmp_path / str(options), story, **options)
    with pytest.raises(MissingData, match="no regions in the launch 0"):
        asked(tmp_path / "none", story)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_chance_against_one_nanosecond_after_the_other(tmp_path: Path, seed: int) -> None:
    story = chance(seed, launches=1)
    (launch,) = story.launches
    rows = asked(tmp_path, story, slices=7, launch=0)
    begin, end = launch.row["start"], launch.row["end"]
    edges = [begin + number * (end - begin) // 7 for number in range(8)]
    expected = {}
    for low, high in pairwise(edges):
        for tag in ("load", "mma", "wait", "store"):
            pieces = [
                (number, min(row["end"], high) - max(row["start"], low))
                for number, unit in enumerate(launch.units)
                for row in unit.events
                if row["tag"] == tag
                and row["kind"] != "mark"
                and row["start"] < min(row["end"], high)
                and row["end"] > low
            ]
            if pieces:
                spent = sum(length for _, length in pieces)
                expected[low - begin, tag] = (
                    pytest.approx(spent / (high - low)),
                    len({number for number, _ in pieces}),
                )
    assert {(row["Start (ns)"], row["Tag"]): (row["Active"], row["Units"]) for row in rows} == expected
