"""The kernel of `numba_kernels.py` whose cost is measured, without a word of recording."""

from __future__ import annotations

from typing import Any

from numba import cuda  # noqa: TID253


def loop(out: Any, count: Any, prof: Any) -> None:
    """As `loop`, without the region."""
    total = out[cuda.threadIdx.x]
    i = 0
    while total > 0:
        total = total * out[i] + total
        i += 1
    out[cuda.threadIdx.x] = total
