"""python_hotspots: the same numbers as cpu_hotspots from samples, and from traced calls where there are no samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.stats.cpu_story import tell
from warplens import catalog
from warplens.analysis.cpu.frames import is_library
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

TICK = 1_000
Row = dict[str, Any]


def stat(
    report: Report, name: str = "python_hotspots", selection: Selection | None = None, **options: Any
) -> list[Row]:
    found: list[Row] = (
        catalog.find("stats.tables", name)
        .load()
        .table(report, selection or Selection(), **options)
        .to_pylist()
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "selection", [Selection(), Selection((5_000, 30_000)), Selection(nvtx=("step", None, None))], ids=str
)
def test_samples_as_cpu_hotspots_has_them(tmp_path: Path, selection: Selection) -> None:
    report = tell(tmp_path)
    columns = ("Self (ns)", "Total (ns)", "Samples", "Self (%)", "Total (%)")
    expected = {
        (row["Name"], row["Where"]): [row[name] for name in columns]
        for row in stat(report, "cpu_hotspots", selection, only_python=True, min_percent=0.0)
    }
    found = stat(report, selection=selection, min_percent=0.0)
    assert {
        (row["Name"], row["Where"]): pytest.approx([row[name] for name in columns]) for row in found
    } == expected
    own = [not is_library(row["Where"].rpartition(":")[0]) for row in found]
    assert own == sorted(own, reverse=True)
    for key, mine in (("Total (ns)", True), ("Self (ns)", False)):
        values = [row[key] for row, is_mine in zip(found, own, strict=True) if is_mine == mine]
        assert values == sorted(values, reverse=True)


@pytest.mark.slow
def test_threads_are_counted(tmp_path: Path) -> None:
    picture = """
    main:python   |(main;work    )(main;work;work )
    other:python  |(main;work    )(main;wait )
    """
    timeline(tmp_path / "r.warplens", picture)
    with open_report(tmp_path / "r.warplens") as report:
        threads = {row["Name"]: row["Threads"] for row in stat(report)}
        assert threads == {"main": 2, "work": 2, "wait": 1}
        assert (
            "python samples"
            in notes(catalog.find("stats.tables", "python_hotspots").load().table(report, Selection()))[0]
        )


def test_own_code_comes_first(tmp_path: Path) -> None:
    mine, pandas = "/home/me/run.py", "/x/site-packages/pandas/a.py"
    functions = [("main", mine, None), ("apply", pandas, 1), ("load", mine, 1)]
    frames = [
        {"frame": number, "process": 0, "depth": int(parent is not None), "parent": parent, "kind": "python"}
        | {"function": name, "file": file}
        for number, (name, file, parent) in enumerate(functions, 1)
    ]
    samples = [
        {"id": number, "process": 0, "thread": 0, "start": 1000 * number, "end": 1000 * number + 1000}
        | {"kind": "python", "stack": stack, "count": 1, "weight": 1000, "on_cpu": True}
        for number, stack in enumerate([2, 2, 2, 3])
    ]
    timeline(tmp_path / "r.warplens", "main |[x   ]", tables={"frames": frames, "samples": samples})
    with open_report(tmp_path / "r.warplens") as report:
        assert [row["Name"] for row in stat(report)] == ["main", "load", "apply"]


def test_lines_with_their_own_and_their_total_time(tmp_path: Path) -> None:
    mine = "/home/me/run.py"
    lines = [("main", 3, None), ("main", 4, None), ("load", 9, 2)]
    frames = [
        {"frame": number, "process": 0, "depth": int(parent is not None), "parent": parent, "kind": "python"}
        | {"function": name, "file": mine, "line": line, "first_line": 1}
        for number, (name, line, parent) in enumerate(lines, 1)
    ]
    samples = [
        {"id": number, "process": 0, "thread": 0, "start": 1000 * number, "end": 1000 * number + 1000}
        | {"kind": "python", "stack": stack, "count": 1, "weight": 1000, "on_cpu": True}
        for number, stack in enumerate([1, 3, 3, 2])
    ]
    timeline(tmp_path / "r.warplens", "main |[x   ]", tables={"frames": frames, "samples": samples})
    with open_report(tmp_path / "r.warplens") as report:
        assert [(row["Where"], row["Self (ns)"], row["Total (ns)"]) for row in stat(report, by="line")] == [
            (f"{mine}:4", 1000, 3000),
            (f"{mine}:9", 2000, 2000),
            (f"{mine}:3", 1000, 1000),
        ]


def test_traced_calls(tmp_path: Path) -> None:
    picture = """
    main:call   |(step               )
    main:call   |  (forward  )(loss)
    main:call   |    (forward)
    worker:call |(forward   )
    """
    timeline(tmp_path / "r.warplens", picture, tick_ns=TICK)
    with open_report(tmp_path / "r.warplens") as report:
        found = {
            row["Name"]: [row[name] // TICK for name in ("Self (ns)", "Total (ns)")]
            + [row["Calls"], row["Threads"]]
            for row in stat(report)
        }
        assert found == {
            "forward": [11 + 12, 11 + 12, 3, 2],
            "step": [21 - 11 - 6, 21, 1, 1],
            "loss": [6, 6, 1, 1],
        }
        assert stat(report, calls=True) == stat(report)


def test_without_either(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    with (
        open_report(tmp_path / "r.warplens") as report,
        pytest.raises(MissingData, match="does not contain Python samples or calls"),
    ):
        stat(report)
