"""A short form of `make torture`: the same programs and cases in each run, at moments that differ; what is printed finds a round again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import SRC
from tests.support.thorough import THOROUGH

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.require("native", "gcc")
@pytest.mark.timeout(300)
def test_no_round_loses_a_range_or_harms_a_program() -> None:
    """As many rounds as fit into the time, up to so many: each may last as long as the slowest program."""
    rounds, seconds = ("60", "50") if THOROUGH else ("12", "10")
    command = [
        sys.executable,
        "-m",
        "tests.torture",
        "--rounds",
        rounds,
        "--seconds",
        seconds,
        "--seed",
        "77",
    ]
    environment = os.environ | {"PYTHONPATH": f"{SRC}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
