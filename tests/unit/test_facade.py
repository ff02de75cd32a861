"""`import warplens`: all there, nothing loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import warplens
from warplens.report import Report
from warplens.testing.timeline import timeline

HEAVY = ("numpy", "pyarrow", "duckdb", "rich", "click", "pandas", "warplens.nvtx", "warplens.report")


def test_every_name_is_there() -> None:
    for name in warplens.__all__:
        assert getattr(warplens, name) is not None
    assert set(warplens.__all__) <= set(dir(warplens))


def test_open(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    report = warplens.open(tmp_path / "r.warplens")
    assert isinstance(report, Report)
    assert type(report) is warplens.Report
    assert report.stats("nvtx_sum").num_rows == 1
    with report.between(report.origin, report.end) as part:
        assert part.stats("nvtx_sum").num_rows == 1


def test_importing_it_loads_nothing_heavy() -> None:
    text = f"import sys, warplens; warplens.__version__, warplens.ReportError; print([m for m in {HEAVY} if m in sys.modules])"
    environment = {"PYTHONPATH": str(Path(warplens.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"
