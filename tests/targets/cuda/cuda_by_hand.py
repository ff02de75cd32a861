"""Uses the look-alike driver by itself and records some of it: `cuda_by_hand.py AGENT MODE DIRECTORY…`."""

from __future__ import annotations

import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def start() -> None:
    """Begin to use CUDA, as a framework does."""
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0


def launch(name: str, times: int = 1, ns: int = 1000) -> None:
    """Launch a kernel of that name."""
    function = ctypes.c_void_p()
    assert cuda.cuModuleGetFunction(ctypes.byref(function), None, f"{name}@{ns}".encode()) == 0
    for _ in range(times):
        assert cuda.cuLaunchKernel(function, *[1] * 6, 0, None, None, None) == 0


def ranges() -> int:
    """Work in and between NVTX ranges of two names."""
    from warplens import nvtx

    start()
    for name in ("other", "capture", "other", "capture"):
        with nvtx.annotate(name):
            launch(f"in_{name}", 4)
        launch("between", 3)
    return int(cuda.cuCtxSynchronize())


def main() -> int:
    """Play one of the modes."""
    agent, mode, *folders = sys.argv[1:]
    if mode == "ranges":
        return ranges()
    warplens = ctypes.CDLL(agent)
    if mode != "early":
        start()
        launch("before", 3)
    for number, folder in enumerate(folders):
        assert warplens.warplens_start(folder.encode()) == 0
        if mode == "early" and number == 0:
            start()
        launch(f"in_{number}", 10)
        if mode == "busy":
            launch("long", ns=20_000_000)
        assert warplens.warplens_stop() == 0
        launch("between", 5)
    if mode == "exit":  # in the middle of a recording
        assert warplens.warplens_start(folders[0].encode()) == 0
        launch("last", 2)
        os._exit(0)
    assert cuda.cuCtxSynchronize() == 0
    return 0


sys.exit(main())
