"""A finisher killed on its way, and several at once: the report is whole when it is opened next, and whole once."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.thorough import THOROUGH, few

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("interrupted.py")


@pytest.mark.parametrize(
    ("raw", "at_once", "stride"), few([("keep", 1, 5), ("live", 3, 7), ("drop", 3, 2), ("drop", 1, 3)], 2)
)
def test_killed_at_any_step(raw: str, at_once: int, stride: int) -> None:
    stride = stride if THOROUGH else 9 * stride + 1
    path = f"{ROOT / 'src'}:{ROOT}"
    memory = Path("/dev/shm")  # nothing here is about the disk, and its fsync is slow
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        command = [sys.executable, str(SCRIPT), folder, raw, str(at_once), str(stride)]
        done = subprocess.run(
            command, env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) * stride > 40, "there are more steps than that in finishing"
    for step, line in enumerate(lines):
        assert line["rows"]["nvtx_ranges"] == 4, step
        assert line["rows"]["processes"] == 2, step
        assert line["ids"] == [0, 1, 2, 1 << 32], step
        assert line["parts"] == [0], step
        assert line["left"] == [], step
        assert line["pending"] == [], step
        assert not line["spool"], step
    assert lines[-1]["raw"] == (2 if raw == "keep" else 0)
