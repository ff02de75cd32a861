"""The kernels that `benchmarks/intrakernel_cuda.py` times on a GPU: run on the CPU, compiled for GPUs."""

from __future__ import annotations

import ctypes
import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.dsl.compiled import nvcc
from tests.dsl.decoded import told
from tests.support.optional_dependencies import ROOT
from warplens import intrakernel
from warplens.intrakernel.device.cuda_kernels import HostKernels
from warplens.intrakernel.dsl import cuda

SOURCE = ROOT / "benchmarks" / "intrakernel_cuda.cu"


@pytest.mark.require("nvcc")
def test_the_kernels_of_the_benchmark_compile(tmp_path: Path) -> None:
    nvcc(tmp_path / "k.cubin", SOURCE, "sm_90a", "WARPLENS_RING_SLOTS=64")


@pytest.mark.require("g++", "numpy")
def test_the_kernels_of_the_benchmark_run_and_record() -> None:
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
    a, b, c = (
        (ctypes.c_float * (n * n))(*numbers),
        (ctypes.c_float * (n * n))(*reversed(numbers)),
        (ctypes.c_float * (n * n))(),
    )
    into = intrakernel.allocate(1, warps=8, slots=8 * n // 16, tags=cuda.tags(text), device="cpu")
    with into.launch("multiply"):
        HostKernels(text, ["multiply"]).launch("multiply", 1, 256, a, b, c, n, into)
    for row, column in ((0, 0), (3, 77), (127, 127), (64, 5)):
        assert c[row * n + column] == sum(a[row * n + k] * b[k * n + column] for k in range(n))
    found = told(into)
    assert [unit[3:] for unit in found["units"]] == [[8 * n // 16, 0]] * 8


class _Host:
    """The CPU in place of the benchmark's device."""

    arch = "host"

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, ...], HostKernels] = {}

    def kernels(self, buffer: Any, **wishes: bool) -> HostKernels:
        options = tuple(cuda.bind(buffer, **wishes).options)
        if options not in self._compiled:
            names = ["bare", "region", "payload", "ring", "reference", "multiply", "steps"]
            self._compiled[options] = HostKernels(SOURCE.read_text(encoding="utf-8"), names, options)
        return self._compiled[options]

    def zeros(self, nbytes: int) -> Any:
        return (ctypes.c_uint64 * (nbytes // 8))()

    def words(self, memory: Any, count: int) -> list[int]:
        return list(memory[:count])


@pytest.mark.require("g++", "numpy")
@pytest.mark.timeout(1200)
def test_the_benchmark_itself_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the device, and its figures, is what it is on a GPU."""
    monkeypatch.syspath_prepend(str(SOURCE.parent))
    benchmark = importlib.import_module("intrakernel_cuda")
    monkeypatch.setattr(benchmark, "BLOCKS", 2)
    monkeypatch.setattr(benchmark, "THREADS", 32)
    allocate = intrakernel.allocate
    monkeypatch.setattr(
        intrakernel,
        "allocate",
        lambda *words, **named: allocate(*words, **{**named, "device": "cpu", "library": ""}),
    )
    device = _Host()
    timer, *_ = benchmark.timer(device)
    assert timer.value > 0
    rows = benchmark.regions(device, 20)
    assert [row.what for row in rows if row.budget] == ["a region, globaltimer", "a region, clock"]
    assert all(row.peer_value is not None for row in rows)
    assert len(rows) == 5
    product = benchmark.product(device, 1, n=128)[0]
    assert product.value > 0
    assert product.budget == 1.02
    grid = benchmark.grid(device, 1, blocks=50)[0]
    assert grid.note.startswith("50 units, 50 regions, 0 dropped")
