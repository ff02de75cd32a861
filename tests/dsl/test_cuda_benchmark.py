"""The kernels that `benchmarks/intrakernel_cuda.py` times on a GPU: run on the CPU, compiled for GPUs."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.dsl.compiled import nvcc
from tests.dsl.decoded import told
from tests.pieces import ROOT
from warpline import intrakernel
from warpline.intrakernel.device.cuda_kernels import HostKernels
from warpline.intrakernel.dsl import cuda

SOURCE = ROOT / "benchmarks" / "intrakernel_cuda.cu"


@pytest.mark.require("nvcc")
def test_they_compile(tmp_path: Path) -> None:
    nvcc(tmp_path / "k.cubin", SOURCE, "sm_90a", "WARPLINE_RING_SLOTS=64")


@pytest.mark.require("g++", "numpy")
def test_they_run_and_record() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    kernels = HostKernels(text, ["bare", "region", "payload", "ring", "reference", "multiply", "steps"])
    x, took = (ctypes.c_float * 64)(), (ctypes.c_uint64 * 2)()
    slices = intrakernel.allocate(2, warps=1, slots=10, tags=cuda.tags(text), device="cpu")
    ring = intrakernel.allocate(2, warps=1, slots=64, mode="smem", tags=slices.tags, device="cpu")
    for name, into in (("region", slices), ("payload", slices), ("ring", ring)):
        with into.launch(name):
            kernels.launch(name, 2, 32, x, took, 10, into)
        found = told(into)
        assert [unit[3:] for unit in found["units"]] == [[10, 0]] * 2
        assert all(took)
    reference = (ctypes.c_uint64 * (1 + 4 * 65536))()
    kernels.launch("reference", 2, 32, x, took, 10, reference)
    assert reference[0] == 20
    decoded = told(slices)
    assert [event[3] for event in decoded["events"]] == list(range(10)) * 2


@pytest.mark.require("g++", "numpy")
def test_the_product_is_right_and_has_eight_regions_per_tile() -> None:
    text, n = SOURCE.read_text(encoding="utf-8"), 128
    numbers = [(i * 7 % 5) - 2.0 for i in range(n * n)]
    a, b, c = (ctypes.c_float * (n * n))(*numbers), (ctypes.c_float * (n * n))(*reversed(numbers)), (ctypes.c_float * (n * n))()
    into = intrakernel.allocate(1, warps=8, slots=8 * n // 16, tags=cuda.tags(text), device="cpu")
    with into.launch("multiply"):
        HostKernels(text, ["multiply"]).launch("multiply", 1, 256, a, b, c, n, into)
    for row, column in ((0, 0), (3, 77), (127, 127), (64, 5)):
        assert c[row * n + column] == sum(a[row * n + k] * b[k * n + column] for k in range(n))
    found = told(into)
    assert [unit[3:] for unit in found["units"]] == [[8 * n // 16, 0]] * 8
