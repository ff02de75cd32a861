"""A container with little memory: the program, its output and its exit code are as without us, and the recording is whole."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.programs.launching import COMMAND, environment, info
from tests.support.programs.memory_cgroup import memory_cgroup
from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.require("native", "memory-cgroup", "nvtx")

MIB = 1 << 20
RANGES = 6_000_000 if THOROUGH else 1_500_000  # of each of two threads


def test_the_exit_code_is_the_programs_in_a_small_container(tmp_path: Path, target: Target) -> None:
    storm = target("nvtx_storm")
    words = [*COMMAND, "profile", "--light", "-o", "x", "sh", "-c", f"{storm} 2 {RANGES}; exit 7"]
    with memory_cgroup((256 if THOROUGH else 150) * MIB) as group:
        done = subprocess.run(
            group.wrap(*words),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        killed = group.kills
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr
    if killed:
        assert "`warplens info x.warplens` finishes it" in done.stderr
    facts = info(tmp_path / "x.warplens")
    assert (facts["tables"]["nvtx_ranges"], facts["parts"][0]["exit_status"]) == (2 * RANGES + 2, 7)
