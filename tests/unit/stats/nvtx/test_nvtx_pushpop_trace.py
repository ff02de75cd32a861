"""nvtx_pushpop_trace: one row per range, and its place in the nesting."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

PICTURE = """
main |[outer                ][next ]
main | [inner  ] [inner ]
main |  [leaf ]
w@io |     [read ]
w    | {async   }
"""


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(tmp_path / "r.warplens", PICTURE)
    return open_report(tmp_path / "r.warplens")


def trace(report: Report, selection: Selection | None = None) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = (
        catalog.find("stats.tables", "nvtx_pushpop_trace")
        .load()
        .table(report, selection or Selection())
        .to_pylist()
    )
    return rows


def test_the_columns_are_those_of_nsys(report: Report) -> None:
    assert list(trace(report)[0]) == [
        *(
            "Start (ns)",
            "End (ns)",
            "Duration (ns)",
            "DurChild (ns)",
            "DurNonChild (ns)",
            "Name",
            "PID",
            "TID",
        ),
        *("Lvl", "NumChild", "RangeId", "ParentId", "RangeStack", "NameTree"),
    ]


def test_each_range_knows_its_parents_and_children(report: Report) -> None:
    rows = trace(report)
    assert [row["NameTree"] for row in rows] == [
        ":outer",
        "--:inner",
        "----:leaf",
        "io:read",
        "--:inner",
        ":next",
    ]
    outer, inner, leaf, *_ = rows
    assert (outer["Start (ns)"], outer["End (ns)"], outer["Duration (ns)"]) == (0, 23_000, 23_000)
    assert (outer["NumChild"], outer["DurChild (ns)"], outer["DurNonChild (ns)"]) == (2, 17_000, 6_000)
    assert (leaf["Lvl"], leaf["ParentId"]) == (2, inner["RangeId"])
    assert leaf["RangeStack"] == f":{outer['RangeId']}:{inner['RangeId']}:{leaf['RangeId']}"
    assert (outer["ParentId"], outer["PID"], outer["TID"]) == (None, 100, 1000)


def test_a_filter_leaves_rows_out_but_not_their_place(report: Report) -> None:
    rows = trace(report, Selection.parse("3us/4us"))
    assert [row["Name"] for row in rows] == [":outer", ":inner", ":leaf"]
    assert (rows[0]["NumChild"], rows[2]["Lvl"]) == (2, 2)


def test_a_report_without_push_pop_ranges_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |{async }")
    with pytest.raises(MissingData, match="push/pop"):
        trace(open_report(tmp_path / "r.warplens"))
