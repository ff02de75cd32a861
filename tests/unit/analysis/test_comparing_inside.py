"""What kernels recorded of their inside is compared by launch and by region; the figures are those that SQL over the tables gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.analysis.comparison.compare import figures, training_steps
from warplens.flows.differing import diff
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.kernel_insides import DrawnLaunch, launch_tables, pipeline
from warplens.testing.timeline import timeline

PICTURE = "main |[step          ][step          ][step          ]  [eval       ]"
_SUMS = """count(*) AS count, sum(length)::BIGINT AS total, avg(length) AS mean, quantile_disc(length, 0.5)::BIGINT AS p50,
    max(length)::BIGINT AS max, min(length)::BIGINT AS min"""
_ROWS = """
SELECT name, "end" - start AS length, launched AS asked FROM intrakernel_launches
UNION ALL SELECT l.name || ': ' || e.tag, e."end" - e.start, l.launched
FROM intrakernel_events e JOIN intrakernel_launches l ON e.launch = l.id WHERE e.kind != 'mark' """
_STEPS = """
SELECT name, count(*) AS steps, avg(total) AS step_mean, var_pop(total) AS step_variance FROM (
  SELECT r.name, s.start, sum(length)::BIGINT AS total FROM rows r
  JOIN nvtx_ranges s ON s.message = 'step' AND r.asked >= s.start AND r.asked < s."end" GROUP BY ALL) GROUP BY ALL"""


def recorded(path: Path, *, longer: int = 0) -> Report:
    """Record launches of two kernels in three steps and one behind them; `longer`: of the last in each step, ns."""
    launches = []
    for begin in (1000, 17000, 33000, 52000):
        gemm = list(pipeline(begin, begin + 6000, blocks=6))
        more = list(pipeline(begin + 7000, begin + 9000 + longer, blocks=2, tiles=3))
        launches += [
            DrawnLaunch("gemm", begin, begin + 6000, gemm, kernel=None),
            DrawnLaunch("softmax", begin + 7000, begin + 9000 + longer, more, kernel=None, device=None),
        ]
    timeline(path, PICTURE, tables=launch_tables(launches))
    return open_report(path)


def told(report: Report, stepped: bool) -> dict[str, dict[str, float]]:
    table, _ = figures(report, Selection(), training_steps(report, Selection(), None) if stepped else None)
    return {row["name"]: row for row in table.to_pylist() if row["kind"] == "inside"}


@pytest.mark.parametrize("stepped", [True, False])
def test_figures_are_what_sql_gives(tmp_path: Path, stepped: bool) -> None:
    with recorded(tmp_path / "a.warplens") as report:
        own = told(report, stepped)
        expected = {
            row["name"]: row
            for row in report.sql(f"SELECT name, {_SUMS} FROM ({_ROWS}) GROUP BY ALL").to_pylist()
        }
        regions = {
            f"{name}: {tag}" for name in ("gemm", "softmax") for tag in ("tile", "load", "wait", "compute")
        }
        assert own.keys() == expected.keys() == {"gemm", "softmax", *regions}, "no marks"
        for name, row in expected.items():
            assert {key: own[name][key] for key in row} == pytest.approx(row), name
        each = (
            {row["name"]: row for row in report.sql(f"WITH rows AS ({_ROWS}) {_STEPS}").to_pylist()}
            if stepped
            else {}
        )
        assert len(each) == (len(own) if stepped else 0)
        for name, row in own.items():
            expected_step = each.get(name, {"steps": 0, "step_mean": 0, "step_variance": 0})
            assert {key: row[key] for key in expected_step} == pytest.approx(expected_step, abs=1e-6), name


def test_only_what_is_selected_counts(tmp_path: Path) -> None:
    with recorded(tmp_path / "a.warplens") as report:
        table, _ = figures(report, Selection(time=(17_000, 33_000)), None)
        counts = {row["name"]: row["count"] for row in table.to_pylist() if row["kind"] == "inside"}
        assert (counts["gemm"], counts["softmax"], counts["gemm: load"]) == (1, 1, 24)


def test_a_longer_region_is_told(tmp_path: Path) -> None:
    with recorded(tmp_path / "a.warplens") as before, recorded(tmp_path / "b.warplens", longer=1500) as after:
        changes = {change.name: change for change in diff(before, after, rules=False).of("inside")}
    assert changes["gemm: load"].status == "same"
    longer = changes["softmax: compute"]
    assert longer.before is not None
    assert longer.after is not None
    assert longer.after.count == longer.before.count
    assert longer.delta > 0
    assert changes["softmax"].delta == 1500


def test_a_report_without_such_kernels_has_none(tmp_path: Path) -> None:
    timeline(tmp_path / "a.warplens", PICTURE)
    with open_report(tmp_path / "a.warplens") as report:
        assert told(report, True) == {}
