"""Times regions inside a kernel: `with region(prof, "load"):` in CuTe DSL, Triton, Numba-CUDA or CUDA C++.

    from warpline import intrakernel as ik

    buffer = ik.allocate(grid=(64, 8), warps=4, tags=["load", "compute"])
    with buffer.launch("gemm"):
        kernel[grid](…, buffer.memory)          # records with the device functions of warpline.intrakernel.dsl.<language>
    events = buffer.decode().events             # NumPy: unit, start and end in ns, tag, flags, payload

Under `warpline profile` buffers are stored by themselves, and their regions are in the report under their kernels.
Importing this loads nothing heavy; decoding needs NumPy.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warpline.intrakernel.buffers import Buffer, Launch, allocate
    from warpline.intrakernel.layout import Shape
    from warpline.intrakernel.tags import TagTable

__all__ = ["Buffer", "Launch", "Shape", "TagTable", "allocate"]

_HOMES = {
    "Buffer": "warpline.intrakernel.buffers",
    "Launch": "warpline.intrakernel.buffers",
    "Shape": "warpline.intrakernel.layout",
    "TagTable": "warpline.intrakernel.tags",
    "allocate": "warpline.intrakernel.buffers",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'warpline.intrakernel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
