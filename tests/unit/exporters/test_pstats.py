"""Python's own `pstats` reads what we write: of samples, and of calls that were traced."""

from __future__ import annotations

import io
import pstats
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports import cpu_story
from warplens.errors import MissingData
from warplens.exporters.formats.pstats import write
from warplens.exporters.profiles.pstats_entries import Entries
from warplens.importers.importing import import_file
from warplens.report import open as open_report
from warplens.report.selection import Selection
from warplens.testing.timeline import timeline

TRAIN = "/app/train.py"
MAIN, LOAD, STEP, FORWARD = (
    (TRAIN, 70, "main"),
    (TRAIN, 10, "load"),
    (TRAIN, 40, "step"),
    ("/app/model.py", 5, "Model.forward"),
)
MEMCPY = ("libc.so.6", 0, "memcpy")


def stats(tmp_path: Path, **options: Any) -> dict[tuple[str, int, str], Any]:
    cpu_story.write(tmp_path / "run.warplens")
    with open_report(tmp_path / "run.warplens") as report:
        write(report, tmp_path / "run.pstats", **options)
    read = pstats.Stats(str(tmp_path / "run.pstats"), stream=io.StringIO())
    read.sort_stats("cumulative").print_stats().print_callers().print_callees()
    found: dict[tuple[str, int, str], Any] = read.stats  # type: ignore[attr-defined]
    return found


def test_samples_are_calls_and_times(tmp_path: Path) -> None:
    found = stats(tmp_path)
    tick = cpu_story.TICK / 1e9
    assert found[MAIN][:4] == (80, 80, pytest.approx(10 * tick), pytest.approx(80 * tick))
    assert found[LOAD][:4] == (30, 30, pytest.approx(25 * tick), pytest.approx(30 * tick)), "both lines of it"
    assert found[LOAD][4] == {MAIN: (30, 30, pytest.approx(25 * tick), pytest.approx(30 * tick))}
    assert found[MEMCPY][4] == {LOAD: (5, 5, pytest.approx(5 * tick), pytest.approx(5 * tick))}
    assert sum(row[2] for row in found.values()) == pytest.approx(84 * tick)
    assert stats(tmp_path / "wall", wall=True)[STEP][2] == pytest.approx(20 * tick)


def test_python_samples_are_taken_where_there_are_any(tmp_path: Path) -> None:
    both = cpu_story.tables()
    both["samples"] = sorted(
        [*both["samples"], *cpu_story.tables("native")["samples"][:2]], key=lambda row: row["start"]
    )
    timeline(
        tmp_path / "both.warplens", cpu_story.PICTURE, origin=cpu_story.ORIGIN, tick_ns=50_000, tables=both
    )
    with open_report(tmp_path / "both.warplens") as report:
        write(report, tmp_path / "both.pstats")
    assert pstats.Stats(str(tmp_path / "both.pstats")).stats == stats(tmp_path)  # type: ignore[attr-defined]


def test_a_part_of_the_report(tmp_path: Path) -> None:
    found = stats(tmp_path, selection=Selection.parse("500us/900us", None))
    assert found[FORWARD][0] == 40
    assert LOAD not in found


def test_traced_calls_are_counted(tmp_path: Path) -> None:
    found = stats(tmp_path, calls=True)
    assert found == {
        MAIN: (1, 1, pytest.approx(720e-6), pytest.approx(1e-3), {}),
        LOAD: (
            1,
            1,
            pytest.approx(280e-6),
            pytest.approx(280e-6),
            {MAIN: (1, 1, pytest.approx(280e-6), pytest.approx(280e-6))},
        ),
    }


def test_functions_that_call_themselves_count_once_in_their_total() -> None:
    entries = Entries()
    entries.sampled([MAIN, LOAD, LOAD, STEP, LOAD], 2, 2_000_000_000)
    entries.sampled([MAIN], 1, 1_000_000_000)
    found = entries.stats()
    assert found[LOAD][:4] == (2, 6, 2.0, 2.0)
    assert found[LOAD][4] == {MAIN: (2, 2, 0.0, 2.0), LOAD: (2, 2, 0.0, 2.0), STEP: (2, 2, 2.0, 2.0)}
    assert found[MAIN][:4] == (3, 3, 1.0, 3.0)


def test_exported_pstats_come_back(tmp_path: Path) -> None:
    before = stats(tmp_path)
    import_file(tmp_path / "run.pstats", tmp_path / "back.warplens")
    with open_report(tmp_path / "back.warplens") as report:
        write(report, tmp_path / "back.pstats")
    after = pstats.Stats(str(tmp_path / "back.pstats")).stats  # type: ignore[attr-defined]
    assert {name: row[2:4] for name, row in after.items()} == {
        name: pytest.approx(row[2:4]) for name, row in before.items()
    }


def test_reports_without_samples_and_calls_are_refused(tmp_path: Path) -> None:
    timeline(tmp_path / "none.warplens", "main |[a  ]")
    with open_report(tmp_path / "none.warplens") as report, pytest.raises(MissingData, match="CPU sampling"):
        write(report, tmp_path / "out")
    assert not (tmp_path / "out").exists()
