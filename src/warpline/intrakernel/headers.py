"""Where the header for CUDA C++ kernels is."""

from __future__ import annotations

import os

from warpline.errors import CaptureError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HEADER = "warpline.cuh"


def include_path() -> str:
    """Return the folder with `warpline.cuh`, for `-I` of nvcc, NVRTC and host compilers. CaptureError where it is not there.

    In a checkout that is `native/device`, so what is edited there is what kernels are compiled with.
    """
    checkout = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "native", "device")
    for folder in (checkout, os.path.join(_PACKAGE, "_lib", "include")):
        if os.path.isfile(os.path.join(folder, _HEADER)):
            return folder
    raise CaptureError(f"{_HEADER} is not beside this package: install warpline again, with its native half")
