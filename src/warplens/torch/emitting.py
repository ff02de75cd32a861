"""`warplens.torch.emit_nvtx`: operators of PyTorch as NVTX ranges, for every NVTX tool."""

from __future__ import annotations

import os

import torch

from warplens.nvtx._active import active

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


class emit_nvtx:
    """Emits each operator that runs in a `with` block as an NVTX range, also in builds for the CPU.

        with warplens.torch.emit_nvtx():
            train(batch)

    For other tools, such as Nsight Systems: warplens records operators without it. The ranges are in the default domain, and those of
    the backward pass in PyTorch's threads for it. `torch.autograd.profiler.emit_nvtx` raises in builds for the CPU. Nothing happens
    if no tool listens. OSError where this version of PyTorch has no such observers.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._number: int | None = None

    def __enter__(self) -> emit_nvtx:
        if self._enabled and active.attached():
            self._number = active.emit_operators(_library())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        number, self._number = self._number, None
        if number is not None:
            active.stop_operators(number)


def _library() -> str:
    return os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
