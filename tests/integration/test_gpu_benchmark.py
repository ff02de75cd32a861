"""`benchmarks/gpu_launch.py` without a GPU: its programs, with counts of one and all of PyTorch pretended, bare and recorded for real."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from tests.pieces import ROOT

pytestmark = pytest.mark.require("native")
_TORCH = "import sys\nfrom unittest.mock import MagicMock\nsys.modules[__name__] = MagicMock()\n"


def test_every_program_is_timed_in_every_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    benchmark = importlib.import_module("gpu_launch")
    (tmp_path / "torch.py").write_text(_TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    small = {what: re.sub(r"work, [\d_]+\)", "work, 36)", text) for what, text in benchmark.PROGRAMS.items()}
    assert all("work, 36)" in text for text in small.values())
    monkeypatch.setattr(benchmark, "PROGRAMS", small)
    monkeypatch.setattr(benchmark, "MODES", {mode: benchmark.MODES[mode] for mode in ("NVTX alone", "kernels and API")})
    rows = list(benchmark.run(quick=True))
    assert len(rows) == 2 * len(small)
    assert [row.budget for row in rows] == [None, benchmark.LAUNCH_BUDGET_US] * 3 + [None, benchmark.STEP_BUDGET]
    assert all(row.unit == "µs" for row in rows)
