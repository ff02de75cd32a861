"""cpu_hotspots against the same thing in plain Python over every sample; its trees are checked in tests/unit/analysis/test_stacks.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit.stats.cpu_story import ORIGIN, Row, tell
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes, title
from warplens.testing.timeline import timeline

ALL: dict[str, Any] = {"min_percent": 0.0}


def hotspots(report: Report, selection: Selection | None = None, **options: Any) -> list[Row]:
    found: list[Row] = (
        catalog.find("stats.tables", "cpu_hotspots")
        .load()
        .table(report, selection or Selection(), **options)
        .to_pylist()
    )
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return tell(tmp_path_factory.mktemp("samples"))


def stacks(report: Report) -> dict[int | None, list[Row]]:
    frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
    found: dict[int | None, list[Row]] = {None: [{"function": "[no stack]", "where": ""}]}
    for key in frames:
        path: list[Row] = []
        at: int | None = key
        while at is not None:
            where = (
                f"{frames[at]['file']}:{frames[at]['first_line']}"
                if frames[at]["kind"] == "python"
                else frames[at]["module"]
            )
            path.insert(0, {**frames[at], "where": where})
            at = frames[at]["parent"]
        found[key] = path
    return found


def counted(report: Report, kind: str, wall: bool) -> list[Row]:
    return [
        row for row in report.table("samples").to_pylist() if row["kind"] == kind and (wall or row["on_cpu"])
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "wall"), [("native", False), ("python", False), ("python", True)])
@pytest.mark.parametrize("windowed", [False, True])
def test_functions(report: Report, kind: str, wall: bool, windowed: bool) -> None:
    asked = report.window(1) if windowed else report
    paths = stacks(asked)
    own: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    samples: Counter[tuple[str, str]] = Counter()
    for row in counted(asked, kind, wall):
        names = [(frame["function"], frame["where"]) for frame in paths[row["stack"]]]
        own[names[-1]] += row["weight"]
        for name in set(names):  # recursion counts once
            total[name] += row["weight"]
            samples[name] += row["count"]
    found = hotspots(asked, kind=kind, wall=wall, **ALL)
    assert {
        (row["Name"], row["Where"]): (row["Self (ns)"], row["Total (ns)"], row["Samples"]) for row in found
    } == {name: (own[name], total[name], samples[name]) for name in total}
    assert [row["Self (ns)"] for row in found] == sorted(own.values(), reverse=True) + [0] * (
        len(total) - len(own)
    )
    assert sum(row["Self (%)"] for row in found) == pytest.approx(100)
    everything = sum(own.values())
    for row in found:
        assert row["Total (%)"] == pytest.approx(100 * row["Total (ns)"] / everything)


@pytest.mark.slow
def test_a_phase_is_the_share_of_its_samples(report: Report) -> None:
    ranges = [row for row in report.table("nvtx_ranges").to_pylist() if row["message"] == "step"]
    expected = 0.0
    for row in counted(report, "native", False):
        spans = [(item["start"], item["end"]) for item in ranges if item["thread"] == row["thread"]]
        length = row["end"] - row["start"]
        cut = sum(max(0, min(row["end"], last) - max(row["start"], first)) for first, last in spans)
        expected += row["weight"] * (
            cut / length if length else any(first <= row["start"] < last for first, last in spans)
        )
    found = hotspots(report, Selection(nvtx=("step", None, None)), **ALL)
    assert expected
    assert sum(row["Self (ns)"] for row in found) == pytest.approx(expected, abs=300)
    shown = (
        catalog.find("stats.tables", "cpu_hotspots")
        .load()
        .table(report, Selection(nvtx=("step", None, None)))
    )
    assert "3 ranges 'step'" in notes(shown)[1]


@pytest.mark.slow
def test_threads_processes_and_ranges(report: Report) -> None:
    rows = counted(report, "native", False)
    tids = dict(
        zip(*(report.table("threads").column(name).to_pylist() for name in ("thread", "tid")), strict=True)
    )
    by_thread = Counter[int]()
    for row in rows:
        by_thread[tids[row["thread"]]] += row["weight"]
    assert {row["TID"]: row["Total (ns)"] for row in hotspots(report, by="thread", **ALL)} == by_thread
    assert {row["PID"] for row in hotspots(report, by="process", **ALL)} == {100, 101}
    assert [row["Range"] for row in hotspots(report, by="range", **ALL)] == ["[no range]"]
    assert sum(row["Time (%)"] for row in hotspots(report, by="thread", **ALL)) == pytest.approx(100)


@pytest.mark.slow
def test_samples_in_ranges(tmp_path: Path) -> None:
    def sample(number: int, around: int | None) -> Row:
        times = {"start": 1_001_000 + number, "end": 1_001_000 + number, "count": 1, "weight": 100 + number}
        return {
            "id": number,
            "process": 0,
            "thread": 0,
            "kind": "python",
            "on_cpu": True,
            "range": around,
            **times,
        }

    empty = tell(tmp_path / "empty", samples=[])
    ids = {row["domain"]: row["id"] for row in empty.table("nvtx_ranges").to_pylist() if row["process"] == 0}
    report = tell(tmp_path / "some", samples=[sample(0, ids[None]), sample(1, ids["io"]), sample(2, None)])
    names = {row["Range"]: row["Total (ns)"] for row in hotspots(report, by="range")}
    assert names == {":save": 100, "io:read": 101, "[no range]": 102} or names == {
        ":load": 100,
        "io:read": 101,
        "[no range]": 102,
    }


def test_trees_of_threads_are_below_them(report: Report) -> None:
    found = hotspots(report, by="thread", tree="top-down", **ALL)
    heads = [row for row in found if not row["Name"].startswith(" ")]
    expected = {row["TID"]: row["Total (ns)"] for row in hotspots(report, by="thread", **ALL)}
    assert {int(row["Name"].partition("TID ")[2].rstrip(")")): row["Total (ns)"] for row in heads} == expected
    assert heads[0]["Name"].startswith(("main (Rank", "loader (Rank", "pool (Rank"))
    total, indent = 0, 0
    for row in reversed(found):  # each head's total is the sum of the rows right below it
        depth = (len(row["Name"]) - len(row["Name"].lstrip())) // 2
        indent = max(indent, depth)
        if depth == 1:
            total += row["Total (ns)"]
        elif depth == 0:
            assert total == row["Total (ns)"]
            total = 0
    assert indent > 3


@pytest.mark.slow
def test_depth_and_share_limit_trees(report: Report) -> None:
    for tree in ("top-down", "bottom-up"):
        whole = hotspots(report, tree=tree, **ALL)
        assert sum(row["Self (%)"] for row in whole) == pytest.approx(100)
        short = hotspots(report, tree=tree, depth=1, **ALL)
        assert short == [row for row in whole if not row["Name"].startswith(" ")]
        some = hotspots(report, tree=tree, min_percent=5)
        assert some == [row for row in whole if row["Total (%)"] >= 5]
        assert 0 < len(some) < len(whole)


def test_lines_and_modules(report: Report) -> None:
    lines = {row["Where"] for row in hotspots(report, by="line", **ALL)}
    assert {"/src/main.py:10", "/src/main.py:11", "x.c:1"} <= lines
    modules = {row["Name"]: row["Where"] for row in hotspots(report, by="module", **ALL)}
    assert modules["libx.so"] == "native"
    assert modules["/src/main.py"] == "python"
    assert "[no stack]" in modules


def test_functions_of_python_alone(report: Report) -> None:
    paths = stacks(report)
    own: Counter[str] = Counter()
    for row in counted(report, "native", False):
        python = [frame["function"] for frame in paths[row["stack"]] if frame.get("kind") == "python"]
        own[python[-1] if python else "[no stack]"] += row["weight"]
    assert {row["Name"]: row["Self (ns)"] for row in hotspots(report, only_python=True, **ALL)} == own
    assert {row["Name"].strip() for row in hotspots(report, only_python=True, tree="top-down", **ALL)} == set(
        own
    )


@pytest.mark.slow
def test_the_profile_of_waiting(tmp_path: Path) -> None:
    picture = """
        main    |[step         ]
        main:os |(read:/a<main;load )(poll<main )(sleep )
    """
    timeline(tmp_path / "r.warplens", picture, tick_ns=1000)
    report = open_report(tmp_path / "r.warplens")
    found = {
        row["Name"]: (row["Self (ns)"], row["Total (ns)"], row["Samples"])
        for row in hotspots(report, kind="osrt")
    }
    assert found == {"load": (20_000, 20_000, 1), "main": (12_000, 32_000, 2)}
    part = {
        row["Name"]: row["Self (ns)"]
        for row in hotspots(report, Selection(nvtx=("step", None, None)), kind="osrt")
    }
    assert part == {"load": 15_000, "main": 0}
    with pytest.raises(MissingData, match="OS runtime data with stacks"):
        hotspots(tell(tmp_path), kind="osrt")


@pytest.mark.slow
def test_options_that_exclude_each_other_are_refused(report: Report, tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"by": "colour"},
        {"tree": "oak"},
        {"kind": "x"},
        {"kind": "native", "wall": True},
    ]
    for options in wrong:
        with pytest.raises(UsageError):
            hotspots(report, **options)
    with pytest.raises(MissingData, match=r"^does not contain CPU sampling data in the selected part\.$"):
        hotspots(report, Selection((10**9, 2 * 10**9)))
    with pytest.raises(MissingData, match="in the selected part of threads that ran; `:wall` has"):
        hotspots(report, Selection((10**9, 2 * 10**9)), kind="python")
    with pytest.raises(MissingData, match=r"^does not contain CPU sampling data\.$"):
        hotspots(tell(tmp_path, samples=[]))


@pytest.mark.slow
def test_of_one_kind_only(tmp_path: Path) -> None:
    times = {"start": 1_001_000, "end": 1_001_000, "count": 1, "weight": 5}
    row = {"id": 0, "process": 0, "thread": 0, "on_cpu": True, **times}
    python = tell(tmp_path / "p", samples=[{**row, "kind": "python", "on_cpu": False}])
    with pytest.raises(MissingData, match="threads that ran; `:wall`"):
        hotspots(python)
    assert hotspots(python, wall=True)[0]["Name"] == "[no stack]"
    with pytest.raises(MissingData, match="of the kind native"):
        hotspots(python, kind="native")
    native = tell(tmp_path / "n", samples=[{**row, "kind": "native"}])
    with pytest.raises(MissingData, match="of waiting threads"):
        hotspots(native, wall=True)
    assert hotspots(native)[0]["Samples"] == 1


@pytest.mark.slow
def test_from_the_command_line(report: Report) -> None:
    arguments = [
        "stats",
        str(report.path),
        "-r",
        "cpu_hotspots:tree=top-down:depth=2",
        "--filter-nvtx",
        "step",
    ]
    result = CliRunner().invoke(commands, arguments)
    assert result.exit_code == 0, result.output
    assert "native samples of threads that ran" in result.stdout
    assert "inside 3 ranges 'step' (2 threads)" in result.stdout


def test_a_profile_of_calls_is_one_of_waits(tmp_path: Path) -> None:
    call = {"id": 1, "process": 0, "thread": 0, "start": ORIGIN, "end": ORIGIN + 500, "name": "poll"}
    report = tell(tmp_path, osrt=[{**call, "group": "io", "result": 0, "stack": 1}])
    unit = catalog.find("stats.tables", "cpu_hotspots").load()
    assert title(unit.table(report, Selection(), kind="osrt")) == "Where Threads Waited"
    assert title(unit.table(report, Selection(), kind="python", wall=True)) == "Where Threads Were"
    assert not title(unit.table(report, Selection(), kind="python"))
