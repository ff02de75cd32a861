"""Imports in our own processes: no threads of OpenBLAS, and started programs get the environment of the user."""

from __future__ import annotations

import subprocess
import sys

from tests.support.optional_dependencies import ROOT

_PROGRAM = """
import gc, os
from warplens.cli.light import import_lightly
import_lightly()
import numpy
assert gc.get_threshold()[0] > 10_000
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def test_numpy_starts_no_threads_and_the_environment_stays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.stdout == "1 None\n"
