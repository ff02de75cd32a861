"""The ledger of all time adds up, for each GPU and for the leading thread of each process, and names rules that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reports.simulated_gpu import PAGEABLE, Machine
from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.stats.tables import time_ledger
from warplens.stats.tables.time_ledger import RULES, table
from warplens.testing.timeline import timeline

MS = 1_000_000


def ledger(path: Path, selection: Selection | None = None) -> tuple[dict[str, dict[str, int]], int]:
    with open_report(path) as report:
        rows = table(report, selection or Selection()).to_pylist()
        begin, end = (selection or Selection()).window(report) or report.span
    sums: dict[str, dict[str, int]] = {}
    for row in rows:
        sums.setdefault(row["Where"], {})[row["Cause"]] = row["Time (ns)"]
    return sums, end - begin


def plays(path: Path) -> Path:
    machine = Machine()
    for _ in range(5):
        machine.copy(4 * MS, 16 << 20, PAGEABLE, waits=True)
        machine.launch(2 * MS)
        machine.work(7 * MS)
        machine.wait()
    return machine.write(path / "r.warplens")


def test_each_nanosecond_has_one_cause(tmp_path: Path) -> None:
    sums, whole = ledger(plays(tmp_path))
    assert len(sums) == 2
    for rows in sums.values():
        assert sum(rows.values()) == whole
    (gpu,) = (rows for where, rows in sums.items() if where.startswith("GPU 0"))
    assert (gpu["compute"], gpu["copies alone"]) == (10 * MS, 20 * MS)
    assert gpu["host-bound"] > 15 * MS


def test_a_part_adds_up_to_that_part(tmp_path: Path) -> None:
    sums, whole = ledger(plays(tmp_path), Selection(time=(3 * MS, 17 * MS)))
    assert whole == 14 * MS
    assert {sum(rows.values()) for rows in sums.values()} == {whole}


def test_a_step_has_its_share_of_each_cause(tmp_path: Path) -> None:
    steps = "main    |" + "[step             ]" * 6 + "\nmain:gc |" + "    (2   )         " * 6
    timeline(tmp_path / "r.warplens", steps)
    with open_report(tmp_path / "r.warplens") as report:
        rows = {
            row["Cause"]: row["Time (ns)"] for row in table(report, Selection(), per_step=True).to_pylist()
        }
    assert rows["GC pause"] == 6_000
    assert sum(rows.values()) == 19_000


def test_without_a_loop_there_is_no_step(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[work   ]")
    with open_report(tmp_path / "r.warplens") as report, pytest.raises(MissingData, match="main loop"):
        table(report, Selection(), per_step=True)


def test_a_program_without_a_gpu_has_its_thread(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main    |[step             ]\nmain:gc |    (2   )")
    sums, whole = ledger(tmp_path / "r.warplens")
    ((rows),) = sums.values()
    assert set(rows) >= {"GC pause", "NVTX range"}
    assert sum(rows.values()) == whole


def test_the_ledger_names_existing_rules() -> None:
    known = {unit.id for unit in catalog.units("rules.checks")}
    assert {name for text in RULES.values() for name in text.split(", ")} <= known


def test_an_empty_report_has_no_ledger(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |")
    with open_report(tmp_path / "r.warplens") as report, pytest.raises(MissingData):
        table(report, Selection(time=(5, 5)))


def test_too_many_rows_leave_the_threads_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plays(tmp_path)
    monkeypatch.setattr(time_ledger, "_MOST", 3)
    sums, _ = ledger(path)
    assert [where.partition(" of")[0] for where in sums] == ["GPU 0"]
