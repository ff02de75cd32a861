"""Programs with all sources of the CPU side on in small containers: what the benchmark of long runs promises, in seconds."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests.support.thorough import few

pytestmark = pytest.mark.require("native", "memory-cgroup", "nvtx")

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
MIB = 1 << 20


@pytest.mark.parametrize("memory", few([128, 256, 512], 1))
def test_a_program_with_everything_on_in_a_small_container(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code, output and report are whole: `measure` raises where they are not. The program stays as small as is promised."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    long_run = importlib.import_module("long_run")
    result = long_run.measure(6.0, 20_000, memory * MIB)
    assert len(result.later) >= 3
    assert result.ranges == pytest.approx(6.0 * 20_000, rel=0.3)
    beyond = [look.recorded - look.plain for look in result.later]
    assert max(beyond) <= (32 + long_run.THREADS) * MIB
    assert result.later[-1].spool > MIB
