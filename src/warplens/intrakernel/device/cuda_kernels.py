"""Compiles and runs kernels in CUDA C++, on a GPU or on the CPU.

With nvcc or NVRTC and the driver, or with the compiler of the host.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warplens.disk.files import write
from warplens.errors import CaptureError
from warplens.intrakernel import driver
from warplens.intrakernel.headers import include_path

_STANDARD = "-std=c++17"
Size = int | Sequence[int]


def host_compiler() -> str | None:
    """The C++ compiler of the host: $CXX, else the first that is on PATH."""
    return next(
        filter(None, map(shutil.which, filter(None, (os.environ.get("CXX"), "g++", "clang++", "c++")))), None
    )


def gpu_compiler() -> str | None:
    """What can compile for a GPU here: `nvcc`, or `nvrtc` through cuda-bindings."""
    if shutil.which("nvcc"):
        return "nvcc"
    try:
        return "nvrtc" if find_spec("cuda.bindings.nvrtc") else None
    except ModuleNotFoundError:
        return None


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise CaptureError(
            f"{os.path.basename(command[0])} cannot compile the kernel:\n{done.stderr or done.stdout}"
        )


def compile_gpu(source: str, arch: str, options: Sequence[str] = (), compiler: str | None = None) -> bytes:
    """Compile for an architecture such as `sm_90a`; return the cubin.

    CaptureError with what the compiler said.
    """
    compiler = compiler or gpu_compiler()
    if compiler is None:
        raise CaptureError(
            "no CUDA C++ compiler is installed: neither nvcc nor cuda-bindings (pip install "
            "cuda-bindings nvidia-cuda-nvrtc)"
        )
    words = [_STANDARD, f"-I{include_path()}", *options]
    if compiler == "nvrtc":
        return _nvrtc(source, [f"--gpu-architecture={arch}", *words])
    with tempfile.TemporaryDirectory(prefix="warplens-") as folder:
        path, out = os.path.join(folder, "kernel.cu"), os.path.join(folder, "kernel.cubin")
        write(Path(path), source)
        _run([compiler, "-O3", f"-arch={arch}", *words, "-cubin", path, "-o", out])
        with open(out, "rb") as compiled:
            return compiled.read()


def _nvrtc(source: str, words: list[str]) -> bytes:
    from cuda.bindings import nvrtc  # type: ignore[import-not-found, unused-ignore]

    made, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    if made:
        raise CaptureError(f"NVRTC does not start: {made}")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(words), [word.encode() for word in words])
        if status:
            text = bytes(nvrtc.nvrtcGetProgramLogSize(program)[1])
            nvrtc.nvrtcGetProgramLog(program, text)
            raise CaptureError(f"NVRTC cannot compile the kernel:\n{text.decode(errors='replace')}")
        cubin = bytes(nvrtc.nvrtcGetCUBINSize(program)[1])
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _three(size: Size) -> tuple[int, int, int]:
    lengths = [size] if isinstance(size, int) else list(size)
    x, y, z = (*lengths, 1, 1)[:3]
    return x, y, z


def _packed(arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The addresses of the arguments, and the objects that must live as long.

    Numbers, ctypes values, buffers of warplens.
    """
    values: list[Any] = []
    for value in arguments:
        if hasattr(value, "pointer"):
            value = ctypes.c_void_p(value.pointer)
        elif isinstance(value, ctypes.Array):
            value = ctypes.c_void_p(ctypes.addressof(value))
        elif isinstance(value, int):
            value = ctypes.c_int(value)
        elif isinstance(value, float):
            value = ctypes.c_float(value)
        values.append(value)
    return (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values)), values


class HostKernels:
    """Kernels that run on the CPU.

    `HostKernels(source, ["scale"]).launch("scale", 4, 64, array, 1.5, buffer)`.

    Numbers are passed as `int` and `float`; anything else as the ctypes value it is; ctypes arrays and buffers as addresses.
    """

    def __init__(self, source: str, names: Sequence[str], options: Sequence[str] = ()) -> None:
        """Compile. CaptureError if there is no compiler, or with what it said."""
        compiler = host_compiler()
        if compiler is None:
            raise CaptureError("no C++ compiler is installed (g++, clang++, or set CXX)")
        entries = "\n".join(f"WARPLENS_HOST_KERNEL({name})" for name in names)
        with tempfile.TemporaryDirectory(prefix="warplens-") as folder:
            path, out = os.path.join(folder, "kernel.cpp"), os.path.join(folder, "kernel.so")
            write(Path(path), f"{source}\n{entries}\n")
            _run(
                [
                    compiler,
                    "-O2",
                    _STANDARD,
                    "-fPIC",
                    "-shared",
                    "-fvisibility=hidden",
                    f"-I{include_path()}",
                    *options,
                    path,
                    "-o",
                    out,
                ]
            )
            self._library = ctypes.CDLL(out)

    def launch(self, name: str, grid: Size, block: Size, *arguments: Any) -> None:
        """Run the kernel; returns when it is done."""
        addresses, values = _packed(arguments)
        sizes = (ctypes.c_uint * 6)(*_three(grid), *_three(block))
        getattr(self._library, f"warplens_launch_{name}")(sizes, addresses)
        del values


class GpuKernels:
    """Kernels of a cubin, on the device that `pointer` is on.

    `GpuKernels(cubin, buffer.pointer).launch(…)` as above.
    """

    def __init__(self, cubin: bytes, pointer: int) -> None:
        """Load. CaptureError where the driver refuses."""
        self._library = ctypes.CDLL("libcuda.so.1")
        self._context = driver.driver().context_of(pointer)
        self._module = ctypes.c_void_p()
        with driver.driver().using(self._context):
            self._do("cuModuleLoadData", ctypes.byref(self._module), cubin)

    def _do(self, call: str, *arguments: Any) -> None:
        status = getattr(self._library, call)(*arguments)
        if status != 0:
            raise CaptureError(f"the CUDA driver refuses {call}: error {status}")

    def launch(self, name: str, grid: Size, block: Size, *arguments: Any, stream: int = 0) -> None:
        """Start the kernel in a stream, by its handle; 0 is the default one."""
        addresses, values = _packed(arguments)
        function = ctypes.c_void_p()
        with driver.driver().using(self._context):
            self._do("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            sizes = [ctypes.c_uint(length) for length in (*_three(grid), *_three(block))]
            self._do(
                "cuLaunchKernel", function, *sizes, ctypes.c_uint(0), ctypes.c_void_p(stream), addresses, None
            )
        del values
