"""Cost of a region in a CUDA C++ kernel, in ns beside the reference design; slowdown of whole kernels.

The kernels are tested on the CPU as well (tests/dsl/test_cuda_benchmark.py).
"""

from __future__ import annotations

import ctypes
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from _intrakernel_gpu import NS_BUDGET, SLOT_BYTES, one_by_one, slowdown, slowdown_row
from harness import Row
from warplens import intrakernel
from warplens.intrakernel.buffers import Buffer
from warplens.intrakernel.device.cuda_kernels import GpuKernels, compile_gpu
from warplens.intrakernel.driver import driver
from warplens.intrakernel.dsl import cuda

NEEDS = "gpu"  # a piece of tests/support/optional_dependencies.py
SOURCE = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")
RING = 64
BLOCKS, THREADS = 64, 256


class Device:
    """The first device: kernels compiled for it, its memory."""

    def __init__(self) -> None:
        self.context = driver().context_of_device()
        major, minor = driver().capability(0)
        self.arch = f"sm_{major}{minor}"

    def kernels(self, buffer: Buffer, **wishes: bool) -> GpuKernels:
        """Compile for what `buffer` is."""
        return GpuKernels(compile_gpu(SOURCE, self.arch, cuda.bind(buffer, **wishes).options), buffer.pointer)

    def zeros(self, nbytes: int) -> ctypes.c_void_p:
        """Memory that lives as long as this program."""
        with driver().using(self.context):
            return ctypes.c_void_p(driver().allocate(nbytes))

    def words(self, memory: ctypes.c_void_p, count: int) -> list[int]:
        """Wait for the device, and read 64-bit numbers."""
        with driver().using(self.context):
            return list((ctypes.c_uint64 * count).from_buffer(driver().read(memory.value or 0, 8 * count)))


def run(quick: bool) -> Iterator[Row]:
    """Measure the timer, the loops, the product and the grid."""
    device, rounds = Device(), 5 if quick else 25
    loops = partial(regions, device, 2_000 if quick else 20_000)
    return one_by_one(
        partial(timer, device), loops, partial(product, device, rounds), partial(grid, device, rounds)
    )


def timer(device: Device) -> list[Row]:
    """By how much the clock that regions are stamped with goes on at least."""
    out = device.zeros(8 * 4096)
    device.kernels(intrakernel.allocate(device="cuda", library="cuda")).launch("steps", 1, 1, out, 4096)
    (step, often), *_ = Counter(device.words(out, 4096)).most_common(1)
    return [Row("step of %globaltimer", step, "ns", note=f"{often} of 4096 steps, {device.arch}")]


def regions(device: Device, count: int) -> list[Row]:
    """Ns that a region adds to a pass of a loop that does next to nothing, in all warps of 64 blocks."""
    x, took = device.zeros(4 * BLOCKS * THREADS), device.zeros(8 * BLOCKS)
    shape: dict[str, Any] = {"grid": BLOCKS, "warps": THREADS // 32, "device": "cuda", "library": "cuda"}
    slices = intrakernel.allocate(**shape, slots=count)
    ring = intrakernel.allocate(**shape, slots=RING, mode="smem")
    cases: dict[str, tuple[str, GpuKernels, Any]] = {"nothing": ("bare", device.kernels(slices), slices)}
    for clock in ("globaltimer", "clock"):
        other = intrakernel.allocate(**shape, slots=count, clock=clock)
        cases[f"a region, {clock}"] = ("region", device.kernels(other), other)
    cases["a region with payload and generation"] = (
        "payload",
        device.kernels(slices, generation=True),
        slices,
    )
    claimed = intrakernel.allocate(**shape, slots=count, mode="claim")
    cases["a region in a slice that was claimed"] = ("region", device.kernels(claimed), claimed)
    cases["a region into a ring in shared memory"] = ("ring", device.kernels(ring), ring)
    cases["an event of the reference design"] = ("reference", cases["nothing"][1], device.zeros(SLOT_BYTES))
    values: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(7):
        for name, (kernel, kernels, into) in cases.items():
            # A buffer whose slices are claimed begins anew for each launch.
            with into.launch(kernel) if isinstance(into, Buffer) else nullcontext():
                kernels.launch(kernel, BLOCKS, THREADS, x, took, count, into)
            values[name].append(statistics.median(device.words(took, BLOCKS)) / count)
    best = {name: min(found) for name, found in values.items()}
    peer = best["an event of the reference design"] - best["nothing"]
    return [
        Row(
            name,
            best[name] - best["nothing"],
            "ns",
            "the reference design",
            peer,
            NS_BUDGET if "region," in name else None,
            "value",
        )
        for name in cases
        if name not in ("nothing", "an event of the reference design")
    ]


def product(device: Device, rounds: int, n: int = 4096) -> list[Row]:
    """How much slower a matrix product is with eight regions per tile, and with the same code switched off."""
    a, b, c = (device.zeros(4 * n * n) for _ in range(3))
    grid = (n // 128, n // 128)
    buffer = intrakernel.allocate(grid, warps=8, slots=n // 16 * 8, device="cuda", library="cuda")
    on, off = device.kernels(buffer), device.kernels(buffer, enabled=False)

    def launch(kernels: GpuKernels) -> None:
        kernels.launch("multiply", grid, 256, a, b, c, n, buffer)

    found = slowdown(partial(launch, on), partial(launch, off), lambda: device.words(c, 1), rounds=rounds)
    note = f"{n} x {n} x {n}, fp32, {rounds} rounds of 5"
    return [slowdown_row("matrix product with 8 regions per tile", found, note)]


def grid(device: Device, rounds: int, blocks: int = 1_000_000) -> list[Row]:
    """What one region and the begin and end of a unit add to each of a million blocks of one warp, which do next to nothing else."""
    buffer = intrakernel.allocate(blocks, slots=1, device="cuda", library="cuda")
    x, took = device.zeros(4 * blocks * 32), device.zeros(8 * blocks)
    on, off = device.kernels(buffer), device.kernels(buffer, enabled=False)

    def launch(kernels: GpuKernels) -> None:
        kernels.launch("region", blocks, 32, x, took, 1, buffer)

    bare, slower = slowdown(
        partial(launch, on), partial(launch, off), lambda: device.words(took, 1), rounds=rounds
    )
    found = buffer.decode()
    note = f"{len(found.units):,} units, {len(found.events):,} regions, {found.dropped} dropped; {bare:.3g} ms without"
    return [
        Row(
            f"{blocks:,} blocks of one warp with a region each",
            bare * (slower - 1) / blocks * 1e6,
            "ns/block",
            note=note,
        )
    ]
