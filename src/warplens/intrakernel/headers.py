"""Locates the header for CUDA C++ kernels and checks its version."""

from __future__ import annotations

import os
import zlib

from warplens.errors import CaptureError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HEADER = "warplens.cuh"


def include_path() -> str:
    """Return the folder with `warplens.cuh`, for `-I` of nvcc, NVRTC and host compilers.

    CaptureError where it is not there.

    In a checkout that is `native/device`, so what is edited there is what kernels are compiled with.
    """
    checkout = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "native", "device")
    for folder in (checkout, os.path.join(_PACKAGE, "_lib", "include")):
        if os.path.isfile(os.path.join(folder, _HEADER)):
            return folder
    raise CaptureError(f"{_HEADER} is missing from this package: reinstall warplens with its native half")


def revision() -> str:
    """Return a number for the contents of the headers.

    Compilers that cache kernels by source and options (CuPy) see no other change of them.
    """
    folder, number = include_path(), 0
    for name in sorted(name for name in os.listdir(folder) if name.endswith((".cuh", ".h"))):
        with open(os.path.join(folder, name), "rb") as file:
            number = zlib.crc32(file.read(), number)
    return f"0x{number:08x}"
