"""python_hotspots: the same numbers as cpu_hotspots from samples, and from traced calls where there are no samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.stats.cpu_story import tell
from warplens import catalog
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
    assert [row["Self (ns)"] for row in found] == sorted((row["Self (ns)"] for row in found), reverse=True)


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
