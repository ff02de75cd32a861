"""`import warpline`: all there, nothing loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import warpline
from warpline.query import Report
from warpline.testing.timeline import timeline

HEAVY = ("numpy", "pyarrow", "duckdb", "rich", "click", "pandas", "warpline.nvtx", "warpline.query")


def test_every_name_is_there() -> None:
    for name in warpline.__all__:
        assert getattr(warpline, name) is not None
    assert set(warpline.__all__) <= set(dir(warpline))


def test_open(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warpline", "main |[step ]")
    report = warpline.open(tmp_path / "r.warpline")
    assert isinstance(report, Report)
    assert type(report) is warpline.Report
    assert report.stats("nvtx_sum").num_rows == 1
    with report.between(report.origin, report.end) as part:
        assert part.stats("nvtx_sum").num_rows == 1


def test_importing_it_loads_nothing_heavy() -> None:
    text = f"import sys, warpline; warpline.__version__, warpline.ReportError; print([m for m in {HEAVY} if m in sys.modules])"
    environment = {"PYTHONPATH": str(Path(warpline.__file__).parents[1])}
    found = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
