"""`make gpu-probe` on the look-alike of CUDA: it compiles, is injected, and says what a flush, a canary and an exit bring."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.support.native.fake_cuda import FakeCuda
from tests.support.optional_dependencies import ROOT

pytestmark = pytest.mark.require("native", "g++")

# Phases as those of tools/gpu_probe_program.py: five launches, and a queue that is never empty.
_PROGRAM = """
import ctypes, sys, time
def phase(name): print(f"{time.monotonic():.9f} PHASE {name}", file=sys.stderr, flush=True)
cuda = ctypes.CDLL("libcuda.so.1")
function, context = ctypes.c_void_p(), ctypes.c_void_p()
def kernel(name, number):
    assert cuda.cuModuleGetFunction(ctypes.byref(function), None, name) == 0
    for _ in range(number):
        assert cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, None) == 0
assert cuda.cuInit(0) == 0
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
phase("five")
kernel(b"short@5000", 5)
time.sleep(0.5)
phase("never-idle")
end = time.monotonic() + 1
while time.monotonic() < end:
    kernel(b"long@60000000", 2)
    time.sleep(0.1)
phase("exit")
kernel(b"long@60000000", 2)
"""


@pytest.fixture(scope="module", name="said")
def _said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the probe prints, on CUDA 13.0."""
    folder = tmp_path_factory.mktemp("a probe")
    program, fake = folder / "program.py", FakeCuda("13.0")
    program.write_text(_PROGRAM)
    command = [sys.executable, str(ROOT / "tools" / "gpu_probe.py"), "--out", str(folder), "--cupti", str(fake.cupti)]
    done = subprocess.run(
        [*command, "--program", shlex.join([sys.executable, str(program)])],
        env={**os.environ, **fake.environment()}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_all_runs_are_shown(said: list[str]) -> None:
    assert sum(line.startswith("---") and "exit status 0; CUPTI 130001" in line for line in said) == 4
    assert sum(line.startswith("clock: first realtime") and "registered ours" in line for line in said) == 4


def test_the_rules_of_this_cupti_are_shown(said: list[str]) -> None:
    assert "second subscribe_v2 by size of its parameters: 24 -> 1, 32 -> 39, 40 -> 1, 48 -> 1" in said
    (order, *_) = [line for line in said if line.startswith("records of five launches: ")]
    what, number = order.removeprefix("records of five launches: ").split("; ")[0].split()
    assert what == "kernel"
    assert f"; driver {number} cuLaunchKernel" in order


def test_a_canary_comes_back_though_the_gpu_is_never_idle(said: list[str]) -> None:
    (flushes, *_) = [line for line in said if line.startswith("never-idle: ")]
    number = flushes.split()[1]
    assert int(number) >= 4
    assert f"canary back with {number};" in flushes
