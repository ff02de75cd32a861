"""Uses a GPU as frameworks do: libraries loaded with ctypes by need, threads, processes made by spawn. Argument: how many of these."""

from __future__ import annotations

import ctypes
import multiprocessing
import sys
import threading
from typing import Any

from warplens import nvtx

ROUNDS = 4


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class Gpu:
    """libcudart, by the first name that is there."""

    def __init__(self) -> None:
        for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"):
            try:
                self.runtime = ctypes.CDLL(name)
                break
            except OSError:
                continue
        self.symbols: dict[str, Any] = {}

    def launch(self, name: str) -> None:
        """Launch a kernel of this name, which takes 3 us."""
        if name not in self.symbols:
            self.symbols[name] = ctypes.create_string_buffer(1)
            assert self.runtime.cudaFakeRegister(self.symbols[name], f"{name}@3000".encode()) == 0
        stream, shared = ctypes.c_void_p(None), ctypes.c_size_t(0)
        assert (
            self.runtime.cudaLaunchKernel(
                self.symbols[name], _Dim3(8, 1, 1), _Dim3(64, 1, 1), None, shared, stream
            )
            == 0
        )


def work(gpu: Gpu, name: str) -> None:
    """Launch in ranges, each kernel named after the innermost."""
    for _ in range(ROUNDS):
        with nvtx.annotate(name):
            gpu.launch(name)
            with nvtx.annotate(f"{name}_inner"):
                gpu.launch(f"{name}_inner")


def main() -> None:
    """Everything one process does: a thread of its own, and the main one."""
    gpu = Gpu()
    gpu.launch("none")
    thread = threading.Thread(target=work, args=(gpu, "aside"))
    with nvtx.annotate("step"):
        for _ in range(ROUNDS):
            gpu.launch("step")
    thread.start()
    thread.join()
    gpu.runtime.cudaDeviceSynchronize()


if __name__ == "__main__":
    main()
    context = multiprocessing.get_context("spawn")
    for _ in range(int(sys.argv[1])):
        child = context.Process(target=main)
        child.start()
        child.join(30)
        assert child.exitcode == 0
