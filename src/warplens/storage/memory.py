"""Gives memory back to the system between the steps of large work."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import pyarrow as pa


def give_back() -> None:
    """Give memory that is free back: what one step needed would else be kept beside what the next one needs."""
    pa.default_memory_pool().release_unused()
    if trim := _trimmer():
        trim(0)


@lru_cache(maxsize=1)
def _trimmer() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
