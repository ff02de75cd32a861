"""Cost of a region in a Numba-CUDA kernel, in ns beside the reference design, in the same run.

Not yet run on a GPU: the kernels are compiled for GPUs, and all of it runs in the simulator (tests/dsl/test_numba_benchmark.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from _intrakernel_gpu import BARE, FULL, REFERENCE, REGION, RING, SLOT_BYTES, per_pass, region_rows
from harness import Row
from warplens import intrakernel
from warplens.intrakernel.memory import allocate_memory

NEEDS = "gpu"  # a piece of tests/support/optional_dependencies.py
BLOCKS, WARPS = 64, 4


def lacks() -> str | None:
    """Say what this interpreter has not; None where all is there."""
    return (
        None
        if find_spec("numba") and find_spec("numba_cuda")
        else "the Python package numba-cuda is not installed"
    )


def run(quick: bool) -> list[Row]:
    """Measure the loops."""
    return regions(2_000 if quick else 20_000)


def regions(count: int) -> list[Row]:
    """Ns that a region adds to a pass of a loop that does next to nothing, in all warps of 64 blocks."""
    from numba import cuda

    import _intrakernel_numba_kernels as kernels
    from warplens.intrakernel.dsl.numba import bind

    out, slots = (
        cuda.device_array(BLOCKS * WARPS * 32, "float32"),
        allocate_memory(SLOT_BYTES, "cuda", "numba"),
    )
    shape: dict[str, Any] = {"grid": BLOCKS, "warps": WARPS, "tags": kernels.TAGS, "library": "numba"}
    buffer = intrakernel.allocate(**shape, slots=2 * count)
    ring = intrakernel.allocate(**shape, slots=64, mode="smem")
    loop, payload, reference = (
        cuda.jit(function) for function in (kernels.loop, kernels.payload, kernels.reference)
    )

    def ours(passes: int, kernel: Any, into: Any, **wishes: bool) -> None:
        with into.launch("loop"):
            kernel[BLOCKS, 32 * WARPS](out, passes, bind(into, **wishes))

    cases: dict[str, Callable[[int], object]] = {
        BARE: partial(ours, kernel=loop, into=buffer, enabled=False),
        REGION: partial(ours, kernel=loop, into=buffer),
        FULL: partial(ours, kernel=payload, into=buffer, generation=True),
        RING: partial(ours, kernel=loop, into=ring),
        REFERENCE: lambda passes: reference[BLOCKS, 32 * WARPS](out, passes, slots.pointer),
    }
    return region_rows("Numba-CUDA", per_pass(cases, cuda.synchronize, count))
