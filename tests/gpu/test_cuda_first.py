"""The first minute on a GPU: a program that needs nothing but the driver is recorded, converted and analysed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.recording import ROOT, Recorded, launched, record

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native"), pytest.mark.timeout(200)]

LAUNCHES, BYTES = 100, 1 << 20
_PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry first(.param .u64 where) {
  .reg .u64 %a;
  .reg .u32 %v;
  ld.param.u64 %a, [where];
  cvta.to.global.u64 %a, %a;
  mov.u32 %v, 42;
  st.global.u32 [%a], %v;
  ret;
}
"""
_PROGRAM = f"""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *words):
    status = getattr(cuda, name)(*words)
    assert status == 0, (name, status)
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
host = (ctypes.c_uint32 * ({BYTES} // 4))()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), {_PTX.encode()!r})
call("cuModuleGetFunction", ctypes.byref(function), module, b"first")
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t({BYTES}))
call("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t({BYTES}))
call("cuMemcpyHtoD_v2", memory, host, ctypes.c_size_t({BYTES}))
words = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
for _ in range({LAUNCHES}):
    call("cuLaunchKernel", function, 2, 1, 1, 32, 1, 1, 0, None, words, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", host, memory, ctypes.c_size_t({BYTES}))
print("the kernel wrote", host[0])
"""


@pytest.fixture(name="recorded", scope="module")
def _recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(_PROGRAM, tmp_path_factory.mktemp("first"), "-t", "cuda,nvtx")


def warplens(*words: str | Path) -> str:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "warplens", *map(str, words)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def test_each_launch_and_copy_is_recorded(recorded: Recorded) -> None:
    found = launched(recorded)
    assert [kernel["name"] for kernel, _ in found] == ["first"] * LAUNCHES
    assert all((kernel["grid_x"], kernel["block_x"]) == (2, 32) for kernel, _ in found)
    assert all(call["name"] == "cuLaunchKernel" and call["result"] == 0 for _, call in found)
    assert all(call["start"] <= kernel["start"] <= kernel["end"] for kernel, call in found)
    assert sorted((row["kind"], row["bytes"]) for row in recorded.table("memcpys")) == [
        ("Device-to-Host", BYTES),
        ("Host-to-Device", BYTES),
    ]
    assert [(row["value"], row["bytes"]) for row in recorded.table("memsets")] == [(1, BYTES)]
    assert not recorded.diagnostics()


def test_the_kernels_are_exported(recorded: Recorded, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    warplens("export", "-t", "chrome", "-o", out, recorded.report)
    events = json.loads(out.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert sum(event.get("name") == "first" and event.get("ph") == "X" for event in events) == LAUNCHES


def test_the_kernels_are_counted_and_judged(recorded: Recorded) -> None:
    pytest.importorskip("duckdb")
    (row,) = json.loads(warplens("stats", "-r", "cuda_gpu_kern_sum", "-f", "json", recorded.report))
    assert (row["Name"], row["Instances"]) == ("first", LAUNCHES)
    judged = json.loads(warplens("analyze", "-f", "json", recorded.report))
    assert judged["schema"] == "warplens.findings/1"
    assert judged["span_ns"] > 0
