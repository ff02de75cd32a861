"""Avoids unneeded imports, and returns free memory."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of mallopt()
_LARGE = 1 << 20  # bytes
_ARENAS = 2
_POOL = "ARROW_DEFAULT_MEMORY_POOL"
_BLAS = "OPENBLAS_NUM_THREADS"
_ALLOCATIONS = 50_000  # between two collections of the youngest objects; Python's default is 700


# pyarrow looks for them, and does without
_STORES = ("pyarrow._s3fs", "pyarrow._gcsfs", "pyarrow._azurefs", "pyarrow._hdfs")
_UNUSED = ("pandas", "cloudpickle", "dateutil", *_STORES)


class _Absent:
    """A finder for which some packages are not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in _UNUSED:
            raise ModuleNotFoundError(f"{name} is not used on the command line", name=name)
        return None


def import_lightly() -> None:
    """Make imports cheap in this process: no pandas, no threads of OpenBLAS, few garbage collections.

    pyarrow imports pandas (0.2 s) the first time it converts anything, only to look at its types. OpenBLAS, which comes with NumPy,
    starts a thread for each CPU, which spins for 30 ms or more; nothing here multiplies matrices. Only the C library gets
    the variable: a started program gets `os.environ`, which stays as it is. Collections during imports free nothing, and take a
    tenth of a short command.
    """
    gc.set_threshold(_ALLOCATIONS)
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Absent())
    if _BLAS not in os.environ:
        os.putenv(_BLAS, "1")


def with_all_packages() -> None:
    """Show the hidden packages again, for a package that needs one of them."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Absent)]


def give_back_early() -> None:
    """Return large memory to the system as soon as it is free, in a process that does one thing.

    Loads pyarrow.

    Arrow's pool keeps memory for later, and glibc does, the more the larger the pieces that were freed before.
    """
    if "pyarrow" not in sys.modules:
        before = os.environ.get(_POOL)
        os.environ[_POOL] = "system"  # Arrow looks at it once
        with suppress(ImportError):
            import pyarrow as pa

            pa.default_memory_pool()
        del os.environ[_POOL]
        if before is not None:
            os.environ[_POOL] = before
    setter = getattr(ctypes.CDLL(None), "mallopt", None)
    if setter is not None:
        setter(_M_MMAP_THRESHOLD, _LARGE)
        setter(_M_ARENA_MAX, _ARENAS)
