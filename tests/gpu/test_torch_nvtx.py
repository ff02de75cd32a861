"""PyTorch's own NVTX ranges around work on a real GPU, recorded from an unmodified program."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native", "torch"), pytest.mark.timeout(300)]

_PROGRAM = """
import torch

a = torch.randn(2048, 2048, device="cuda")
with torch.cuda.nvtx.range("training"):
    for step in range(4):
        torch.cuda.nvtx.range_push(f"step {step}")
        a = (a @ a).tanh()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
torch.cuda.nvtx.mark("done")
print(bool(a.isfinite().all()))
"""


def test_ranges_of_a_gpu_program_are_recorded(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "program.py").write_text(_PROGRAM)
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "warplens",
            "profile",
            "--light",
            "-o",
            "run",
            "--",
            sys.executable,
            "program.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True")

    # read as any tool reads a report, so that the machine needs no more than pyarrow
    ranges = parquet.read_table(tmp_path / "run.warplens" / "tables" / "nvtx_ranges").to_pylist()
    spans = {row["message"]: (row["start"], row["end"], row["depth"]) for row in ranges}
    steps = [spans[f"step {step}"] for step in range(4)]
    outer = spans["training"]
    assert all(outer[0] <= start < end <= outer[1] and depth == outer[2] + 1 for start, end, depth in steps)
    assert all(before[1] <= after[0] for before, after in pairwise(steps))
    marks = parquet.read_table(tmp_path / "run.warplens" / "tables" / "nvtx_marks").to_pylist()
    assert "done" in {row["message"] for row in marks}
