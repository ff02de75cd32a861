"""The kernels of `triton_kernels.py` whose cost is measured, without a word of recording."""

# Triton reads the source of kernels, annotations included, and knows none of typing's.
# ruff: noqa: ANN001, ANN201, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def loop(out, count, prof):
    """As `loop`, without the region."""
    base = out.to(tl.pointer_type(tl.float32)) + tl.arange(0, 128)
    total = tl.zeros((128,), tl.float32)
    for i in tl.range(0, count, loop_unroll_factor=1):
        tl.debug_barrier()
        total = total * tl.load(base + i * 128) + total
    tl.store(base, total)
