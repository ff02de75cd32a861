"""memory_sum: memory of processes in all and by phase."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.rules.asking import ORIGIN
from warplens import catalog
from warplens.analysis import memory_phases
from warplens.analysis.comparison.run_facts import PHASE, run_facts
from warplens.errors import MissingData
from warplens.flows.explaining import facts as facts_of
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

MS = 1_000_000
MIB = 1 << 20
# load grows by 60 MiB, work by 20, and 10 of all come back
RANGES = """
main |[load    ][work        ]
"""
OVERLAPPING = """
main |[all [load  ][load  ]    ]
io   |   [load  ][work][load ]
"""
SAMPLES = """
main:python |(main;load)(main;load)(main;work)(main;work)(main;work)
"""
READ = {0: 10, 5: 40, 10: 70, 16: 80, 22: 90, 25: 80}  # ms: MiB


def _report(path: Path, picture: str, tick: int, more: int = 0) -> Path:
    """Write a report; memory is `more` MiB larger from the middle of `load` to its end."""
    rows = [
        {
            "host": "host",
            "process": 0,
            "start": ORIGIN + time * MS,
            "metric": "RSS",
            "unit": "bytes",
            "value": float((value + (more if time == 5 else 0)) * MIB),
        }
        for time, value in READ.items()
    ]
    own = {"file": "/app/train.py"}
    cpu = {"main": own, "load": own, "work": own}
    timeline(path, picture, tick_ns=tick, tables={"host_metrics": rows}, cpu=cpu, main="main")
    return path


def _rows(report: Report) -> dict[str, dict[str, Any]]:
    unit = catalog.find("stats.tables", "memory_sum").load()
    return {row["Phase"]: row for row in unit.table(report, Selection()).to_pylist()}


def test_ranges_are_phases(tmp_path: Path) -> None:
    with open_report(_report(tmp_path / "r.warplens", RANGES, MS)) as report:
        rows = _rows(report)
        assert list(rows) == ["(whole process)", "load", "work"]
        assert rows["(whole process)"]["Max (MiB)"] == 90
        assert rows["(whole process)"]["Grew (MiB)"] == 80  # not what comes back at the end
        assert rows["load"]["Max (MiB)"] == 40
        assert rows["load"]["Grew (MiB)"] == pytest.approx(60, abs=7)
        assert rows["load"]["Time (ns)"] == 10 * MS
        facts = run_facts(report, Selection(), None)
        assert facts["most memory, during work"] > facts["most memory, during load"] == 40 * MIB


def test_ranges_are_read_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows may be larger than memory. Ranges of one name overlap across threads and row groups."""
    with open_report(_report(tmp_path / "r.warplens", OVERLAPPING, MS)) as report:
        rows = _rows(report)
        whole = report.table

        def by_one(report: Report, name: str, columns: list[str]) -> Iterator[pa.Table]:
            table = whole(name, columns)
            yield from (table.slice(row, 1) for row in range(table.num_rows))

        def table(name: str, columns: list[str] | None = None) -> pa.Table:
            assert name != "nvtx_ranges"
            return whole(name, columns)

        monkeypatch.setattr(memory_phases, "stream", by_one)
        monkeypatch.setattr(report, "table", table)
        assert _rows(report) == rows
        assert rows["load"]["Time (ns)"] == 19 * MS


def test_without_ranges_functions_are(tmp_path: Path) -> None:
    with open_report(_report(tmp_path / "r.warplens", SAMPLES, 500_000)) as report:
        rows = _rows(report)
        assert next(iter(rows)) == "(whole process)"
        assert {"load (train.py)", "work (train.py)"} <= set(rows)


@pytest.mark.parametrize(("more", "shown"), [(3, []), (6, ["most memory, during load"])])
def test_diff_shows_phases_whose_memory_changed_by_a_tenth(
    tmp_path: Path, more: int, shown: list[str]
) -> None:
    with (
        open_report(_report(tmp_path / "a.warplens", RANGES, MS)) as before,
        open_report(_report(tmp_path / "b.warplens", RANGES, MS, more)) as after,
    ):
        shown_facts = facts_of([before], [after], Selection(), None)
        assert [fact.name for fact in shown_facts if PHASE in fact.name] == shown


def test_a_report_without_readings_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", RANGES)
    with open_report(tmp_path / "r.warplens") as report, pytest.raises(MissingData, match="memory of"):
        _rows(report)
