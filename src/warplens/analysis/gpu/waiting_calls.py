"""Names of the CUDA calls that wait for the GPU, as all sources have them."""

from __future__ import annotations

import re
from functools import lru_cache

# Synchronize and its kin; copies and sets of memory that return when they are done, except those behind a stream.
_SYNC = re.compile(r"Synchronize|^hsa_signal_wait")
_COPY = re.compile(r"^(cuda|hip|cu)Mem(cpy|set)(?!.*Async)(?!.*Batch)")


@lru_cache(maxsize=4096)
def synchronizes(name: str) -> bool:
    """True if the only purpose of a call is to wait: `cudaDeviceSynchronize`, `cudaStreamSynchronize`, and so on."""
    return _SYNC.search(name) is not None


@lru_cache(maxsize=4096)
def waits(name: str) -> bool:
    """True if a call waits for the GPU: calls that synchronize, and copies without `Async`."""
    return synchronizes(name) or _COPY.search(name) is not None
