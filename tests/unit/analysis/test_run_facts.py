"""Figures of a run: the peak memory of its processes by name."""

from __future__ import annotations

from pathlib import Path

from warplens.analysis.comparison.run_facts import run_facts
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.storage.writer import Facts, write_part


def _report(path: Path, sizes: dict[int, tuple[str, int | None]]) -> dict[str, float]:
    rows = [
        {
            "process": key,
            "pid": 100 + key,
            "parent_pid": 1,
            "host": "h",
            "executable": "",
            "command": "",
            "start": 0,
            "end": 1000,
            "exited": True,
            "name": name,
            "max_rss": size,
            "primary": key == 0,
        }
        for key, (name, size) in sizes.items()
    ]
    write_part(path, Facts(id="a", host="h", boot_id="b", origin=0, end=1000), {"processes": rows})
    with open_report(path) as report:
        return run_facts(report, Selection(), None)


def test_memory_of_each_name_largest_first(tmp_path: Path) -> None:
    facts = _report(
        tmp_path / "r.warplens", {0: ("make", 5), 1: ("cc1", 30), 2: ("cc1", 70), 3: ("sh", None)}
    )
    assert facts["most memory"] == 70
    assert [name for name in facts if name.startswith("most memory,")] == [
        "most memory, cc1",
        "most memory, make",
    ]
    assert facts["most memory, cc1"] == 70


def test_one_process_has_one_figure(tmp_path: Path) -> None:
    facts = _report(tmp_path / "r.warplens", {0: ("python", 5)})
    assert [name for name in facts if name.startswith("most memory")] == ["most memory"]
