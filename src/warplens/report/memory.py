"""Gives memory back to the system between the steps of large work."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import pyarrow as pa

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of mallopt()
_LARGE = 1 << 20  # bytes


def give_back() -> None:
    """Give memory that is free back: what one step needed would else be kept beside what the next one needs."""
    pa.default_memory_pool().release_unused()
    if trim := _trimmer():
        trim(0)


def be_frugal() -> None:
    """Have all that is large go back to the system as soon as it is free: for a process of ours that does one thing.

    The pool of Arrow keeps memory for later, and glibc does, the more the larger the pieces that were freed before.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    if setter := getattr(ctypes.CDLL(None), "mallopt", None):
        setter(_M_MMAP_THRESHOLD, _LARGE)
        setter(_M_ARENA_MAX, 1)


@lru_cache(maxsize=1)
def _trimmer() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
