"""The example kernel in Triton: tiles that are loaded, computed and stored.

Whether it is interpreted is decided on import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from warplens.intrakernel.device import triton as ik

if TYPE_CHECKING:
    from warplens.intrakernel.buffers import Buffer

_WIDTH = 128


@triton.jit
def tiles(address, count, prof, width: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, D103
    p = ik.profiler(prof)
    x = (
        address.to(tl.int64).to(tl.pointer_type(tl.float32))
        + tl.program_id(0) * count * width
        + tl.arange(0, width)
    )
    for tile in range(count):
        with ik.region(p, "tile", payload=tile):
            with ik.region(p, "load", payload=tile):
                value = tl.load(x + tile * width)
            with ik.region(p, "compute", payload=tile):
                value = tl.sqrt(value * value + 1.0)
            with ik.region(p, "store", payload=tile):
                tl.store(x + tile * width, value)
    ik.mark(p, "done")
    ik.finish(p)


def run(buffer: Buffer, prof: Any, grid: int, count: int) -> None:
    """Launch it once, on data beside the buffer: `grid` programs of `count` tiles each."""
    bytes_needed = 4 * grid * count * _WIDTH
    if buffer.device is None:
        data: Any = bytearray(bytes_needed)
        address = _address(data)
    else:
        import torch

        data = torch.zeros(bytes_needed // 4, dtype=torch.float32, device=f"cuda:{buffer.device}")
        address = data.data_ptr()
    with buffer.launch("example"):
        tiles[(grid,)](address, count, prof, width=_WIDTH)


def _address(data: bytearray) -> int:
    import ctypes

    return ctypes.addressof((ctypes.c_char * len(data)).from_buffer(data))
