"""The processes that we start import nothing from the folder that somebody stands in: a file there may be called like any module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warplens.report import open as open_report

NAMES = ("types", "json", "importlib", "re", "io", "warplens", "pyarrow", "numpy", "threading", "os")


@pytest.mark.require("native")
def test_the_child_that_finishes_a_recording(tmp_path: Path) -> None:
    program = f"""
import os, sys
import warplens
from pathlib import Path
for name in {NAMES}:
    Path(name + ".py").write_text("open('taken', 'a').write('import ' + __name__); raise SystemExit(9)")
with warplens.record("x", wait=True), warplens.nvtx.annotate("step"):
    pass
"""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "p.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "elsewhere/p.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "taken").exists()
    with open_report(tmp_path / "x.warplens") as report:
        assert report.table("nvtx_ranges", ["message"]).column(0).to_pylist() == ["step"]
