"""gc_sum, import_sum and python_calls_sum against sums of the rows in plain Python."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stats.asking import stat
from tests.unit.stats.cpu.test_osrt_and_files import SELECTIONS, inside
from tests.unit.stats.cpu_story import Row, tell
from warplens import catalog
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return tell(tmp_path_factory.mktemp("python"))


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_collections(report: Report, selection: Selection) -> None:
    pids = dict(
        zip(*(report.table("processes").column(name).to_pylist() for name in ("process", "pid")), strict=True)
    )
    expected: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in inside(report, selection, "gc"):
        expected[pids[row["process"]], row["generation"]].append(row)
    alone = {pid for pid, _ in expected}  # without a column for it, rows are of one process
    found = {
        (row.get("PID", min(alone)), row["Generation"]): row for row in stat(report, "gc_sum", selection)
    }
    assert set(found) == set(expected)
    for key, row in found.items():
        lengths = [item["end"] - item["start"] for item in expected[key]]
        assert (row["Collections"], row["Total Time (ns)"], row["Max (ns)"]) == (
            len(lengths),
            sum(lengths),
            max(lengths),
        )
        assert row["Med (ns)"] == statistics.median(lengths)
        assert row["Collected"] == sum(item["collected"] for item in expected[key])
    assert {row["TID"] for row in stat(report, "gc_sum", by="thread")} == {1000, 1001, 1002, 1003}
    assert [
        row["Generation"]
        for row in sorted(stat(report, "gc_sum", by="all"), key=lambda row: row["Generation"])
    ] == [0, 1, 2]


def sums(report: Report, selection: Selection, table: str, name: Any) -> dict[Any, dict[str, int]]:
    """Own and total time and number of each name; calls inside one of the same name are not in the total."""
    everything = {row["id"]: row for row in report.table(table).to_pylist()}
    own = {id: row["end"] - row["start"] for id, row in everything.items()}
    for row in everything.values():
        if row["parent"] is not None:
            own[row["parent"]] -= row["end"] - row["start"]
    found: dict[Any, dict[str, int]] = defaultdict(lambda: {"own": 0, "total": 0, "count": 0})
    for row in inside(report, selection, table):
        at, nested = row["parent"], False
        while at is not None:
            nested = nested or name(everything[at]) == name(row)
            at = everything[at]["parent"]
        mine = found[name(row)]
        mine["own"] += own[row["id"]]
        mine["total"] += 0 if nested else row["end"] - row["start"]
        mine["count"] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("by", ["module", "package"])
def test_imports(report: Report, selection: Selection, by: str) -> None:
    expected = sums(
        report,
        selection,
        "imports",
        lambda row: row["name"].split(".")[0] if by == "package" else row["name"],
    )
    found = stat(report, "import_sum", selection, by=by, min_percent=0.0)
    names = {
        row[by.capitalize()]: {"own": row["Self (ns)"], "total": row["Total (ns)"], "count": row["Imports"]}
        for row in found
    }
    assert names == expected
    assert sum(row["Self (%)"] for row in found) == pytest.approx(100)
    assert [row["Self (ns)"] for row in found] == sorted((row["Self (ns)"] for row in found), reverse=True)


def test_small_imports_are_left_out_and_said(report: Report) -> None:
    everything = stat(report, "import_sum", min_percent=0.0)
    least = sorted(row["Self (%)"] for row in everything)[2]
    table = catalog.find("stats.tables", "import_sum").load().table(report, Selection(), min_percent=least)
    assert table.num_rows == len(everything) - 2
    assert notes(table)[0].startswith("2 more with less than")
    assert {row["PID"] for row in stat(report, "import_sum", by="process")} == {100, 101}


@pytest.mark.slow
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_calls(report: Report, selection: Selection, windowed: bool) -> None:
    asked = report.window(1) if windowed else report
    expected = sums(
        asked,
        selection,
        "python_calls",
        lambda row: (row["kind"], row["name"], f"{row['file']}:{row['line']}"),
    )
    found = stat(asked, "python_calls_sum", selection)
    assert {
        (row["Kind"], row["Name"], row["Where"]): {
            "own": row["Self (ns)"],
            "total": row["Total (ns)"],
            "count": row["Calls"],
        }
        for row in found
    } == expected
    assert [row["Total (ns)"] for row in found] == sorted((row["Total (ns)"] for row in found), reverse=True)
    lengths = [
        row["end"] - row["start"]
        for row in inside(asked, selection, "python_calls")
        if (row["kind"], row["name"]) == ("function", "fib")
    ]
    fib = next(row for row in found if (row["Kind"], row["Name"]) == ("function", "fib"))
    assert (fib["Min (ns)"], fib["Max (ns)"], fib["Med (ns)"]) == (
        min(lengths),
        max(lengths),
        statistics.median(lengths),
    )


def test_calls_by_thread_and_kind(report: Report) -> None:
    rows = report.table("python_calls").to_pylist()
    by_thread = Counter(row["thread"] for row in rows if row["kind"] == "task")
    found: Counter[int] = Counter()
    for row in stat(report, "python_calls_sum", kind="task", by="thread"):
        assert row["Kind"] == "task"
        found[row["TID"]] += row["Calls"]
    assert sorted(found.values()) == sorted(by_thread.values())
    assert sum(row["Failed"] for row in stat(report, "python_calls_sum")) == sum(
        row["failed"] is True for row in rows
    )
    with pytest.raises(UsageError, match="choose from: all, function"):
        stat(report, "python_calls_sum", kind="colour")


def test_drawn_calls(tmp_path: Path) -> None:
    picture = """
        main:call |(fib               )  (task:work   )
        main:call |  (fib    )(fib )       !ValueError
        main:call |    (fib )
    """
    timeline(tmp_path / "r.warplens", picture, tick_ns=1000)
    found = {row["Name"]: row for row in stat(open_report(tmp_path / "r.warplens"), "python_calls_sum")}
    assert (found["fib"]["Total (ns)"], found["fib"]["Self (ns)"], found["fib"]["Calls"]) == (
        20_000,
        20_000,
        4,
    )
    assert (found["work"]["Kind"], found["work"]["Total (ns)"]) == ("task", 14_000)
    assert (found["ValueError"]["Kind"], found["ValueError"]["Total (ns)"], found["ValueError"]["Calls"]) == (
        "exception",
        0,
        1,
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gc_sum", "Python garbage collection data"),
        ("import_sum", "Python import data"),
        ("python_calls_sum", "Python call data"),
    ],
)
def test_without_data(report: Report, name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=f"^does not contain {what} in the selected part.$"):
        stat(report, name, Selection((10**9, 2 * 10**9)))
    timeline(tmp_path / "r.warplens", "main |[a  ]")
    with pytest.raises(MissingData, match=f"^does not contain {what}.$"):
        stat(open_report(tmp_path / "r.warplens"), name)
    with pytest.raises(UsageError, match="choose from: "):
        stat(report, name, by="colour")
