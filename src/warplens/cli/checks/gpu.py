"""Checks CUDA for `doctor`: the driver, its GPUs, the copies of CUPTI, and other tools in its place."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from warplens.recording.agent.announce import CUDA_INJECTION
from warplens.recording.agent.cupti_search import libraries
from warplens.recording.gpu.nvml import Nvml, NvmlError

Finding = tuple[str, str, str]  # name, ok or note, text
_MOST = 4


def gpu_findings(found: Sequence[Path] | None = None) -> Iterator[Finding]:
    """Yield the checks of the GPU side.

    `found` are the copies of CUPTI, by default those that this Python would be offered.

    Nothing is started: no context is made, and no process learns of it.
    """
    if found is None:
        found = libraries(sys.executable, os.environ)
    version = _driver_version()
    if version is None:
        yield (
            "cuda",
            "note",
            "no CUDA driver (libcuda.so.1): NVTX is recorded, GPUs are not",
        )
    else:
        yield "cuda", "ok", f"the driver supports CUDA up to {version // 1000}.{version % 1000 // 10}"
    yield from _gpus(present=version is not None)
    names = [str(path) for path in found[:_MOST]] + ["…"] * (len(found) > _MOST)
    if found:
        fits = [path for path in found if (_major(path) or 0) <= (version or 0) // 1000]
        if version is None:
            yield "cupti", "ok", "\n".join(["found for this Python, unused without a driver:", *names])
        elif fits:
            yield (
                "cupti",
                "ok",
                "\n".join(["for this Python, the first that fits the driver counts:", *names]),
            )
        else:
            yield (
                "cupti",
                "note",
                "\n".join(
                    ["none of these is for a driver as old as this one; name another with --cupti:", *names]
                ),
            )
    else:
        yield (
            "cupti",
            "ok" if version is None else "note",
            "no libcupti for this Python, nor in CUDA's usual places; a program may bring its own, "
            "as PyTorch does\n"
            "else install it, e.g. pip install nvidia-cuda-cupti, or name one with --cupti",
        )
    tool = os.environ.get(CUDA_INJECTION)
    if tool:
        yield (
            "other tool",
            "note",
            f"{CUDA_INJECTION} names {tool}: it is loaded first, and before CUDA 13.3 CUPTI serves only one\n"
            "unset the variable to record CUDA with warplens",
        )


def _driver_version() -> int | None:
    """12040 for CUDA 12.4; None without a driver.

    It can be asked before cuInit, which would load tools and wake GPUs.
    """
    version = ctypes.c_int()
    try:
        code = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return None
    return version.value if code == 0 else None


def _gpus(*, present: bool) -> Iterator[Finding]:
    try:
        nvml = Nvml()
    except NvmlError as error:
        if present:
            yield "gpu metrics", "note", f"cannot be sampled: {error}"
        return
    try:
        found = nvml.gpus()
        lines = [f"driver {nvml.driver()}, {len(found)} {'GPU' if len(found) == 1 else 'GPUs'}"]
        for gpu in found[:_MOST]:
            kind = (
                "--gpu-metrics=nvml or gpm"
                if nvml.has_gpm(gpu)
                else "--gpu-metrics=nvml; gpm counts on Hopper and later"
            )
            lines.append(f"{gpu.gpu}: {gpu.name} ({kind})")
        yield "gpu", "ok" if found else "note", "\n".join(lines + ["…"] * (len(found) > _MOST))
    except NvmlError as error:
        yield "gpu", "note", str(error)
    finally:
        nvml.close()


def _major(path: Path) -> int | None:
    """13 for `libcupti.so.13`; None for names that do not tell, such as `libcupti.so.2024.1.0`."""
    digits = path.name.partition(".so.")[2].split(".")[0]
    return int(digits) if digits.isdigit() and int(digits) < 1000 else None
