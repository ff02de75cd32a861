"""Gives memory back to the system between the steps of large work."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import pyarrow as pa


def give_back() -> None:
    """Return free memory to the system.

    Otherwise one step's memory stays beside that of the next step.
    """
    pa.default_memory_pool().release_unused()
    if trim := _trimmer():
        trim(0)


@lru_cache(maxsize=1)
def _trimmer() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
