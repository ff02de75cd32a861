"""A program that forbids itself, for all its threads and on pain of death, what we need: nothing of ours is left in it by then."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.programs.under_everything import both, same
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
PROGRAM = Path(__file__).resolve().parents[2] / "targets" / "processes" / "python_sandbox.py"


@pytest.mark.parametrize("end", ["orderly", "at once"])
def test_a_program_in_a_sandbox_lives_on(end: str, tmp_path: Path) -> None:
    bare, with_us, report = both(tmp_path, sys.executable, "-S", PROGRAM, end)
    if bare.returncode == 6:
        pytest.skip("this kernel has no seccomp")
    same(bare, with_us)
    assert (bare.returncode, bare.stdout) == (5, "inside\n")
    with open_report(report) as opened:
        told = [
            row["message"]
            for row in opened.table("diagnostics").to_pylist()
            if row["code"] == "os-calls-missing"
        ]
        assert any("forbids itself" in message for message in told), told
        assert opened.table("osrt").num_rows > 0
