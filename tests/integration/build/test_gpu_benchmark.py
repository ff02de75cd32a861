"""`benchmarks/gpu_launch.py` without a GPU: all modes and rows, with programs that only print figures and all of PyTorch pretended."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.native.fake_cuda import FakeCuda
from tests.support.optional_dependencies import ROOT

pytestmark = pytest.mark.require("native")
_TORCH = "import sys\nfrom unittest.mock import MagicMock\nsys.modules[__name__] = MagicMock()\n"
# Initialises the look-alike of CUDA, so that what is injected runs.
_LAUNCHES = """#!/bin/sh
exec {python} -c 'import ctypes
ctypes.CDLL("libcuda.so.1").cuInit(0)
print("{{\\"launch\\": 2500.0, \\"replay\\": 50000.0}}")'
"""


def test_every_program_is_timed_in_every_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in FakeCuda().environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    benchmark = importlib.import_module("gpu_launch")
    (tmp_path / "torch.py").write_text(_TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = tmp_path / "launches"
    program.write_text(_LAUNCHES.format(python=shlex.quote(sys.executable)))
    program.chmod(0o755)
    monkeypatch.setattr(benchmark, "compile_launches", lambda folder: str(program))
    monkeypatch.setattr(benchmark, "TORCH", re.sub(r", (200|15), ", ", 1, ", benchmark.TORCH.replace("warm + 1", "warm")))
    rows = list(benchmark.run(quick=True))
    launch, torch = len(benchmark.LAUNCH_MODES) - 1, len(benchmark.TORCH_MODES)
    assert len(rows) == 2 * launch + 2 * torch
    assert [row.budget for row in rows if row.budget] == [benchmark.RAW_BUDGET] * 2 + [benchmark.STEP_BUDGET]
    assert all(row.value == 2.5 for row in rows[:launch])
    assert all(row.unit == "us" and row.peer for row in rows)
