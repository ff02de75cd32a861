"""The example kernel in Numba-CUDA: tiles that are loaded, computed and stored.

Whether it is simulated is decided on import.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import config, cuda

if TYPE_CHECKING:
    from warplens.intrakernel.buffers import Buffer

_THREADS = 64
ik = import_module(f"warplens.intrakernel.device.{'numba_simulated' if config.ENABLE_CUDASIM else 'numba'}")


@cuda.jit
def tiles(x: Any, count: Any, prof: Any) -> None:
    """Work on `count` tiles of a block, one after the other."""
    p = ik.profiler(prof)
    first = cuda.blockIdx.x * count * cuda.blockDim.x + cuda.threadIdx.x
    for tile in range(count):
        whole = ik.start(p)
        t = ik.start(p)
        value = x[first + tile * cuda.blockDim.x]
        ik.stop(p, t, "load", tile)
        t = ik.start(p)
        value = math.sqrt(value * value + 1.0)
        ik.stop(p, t, "compute", tile)
        t = ik.start(p)
        x[first + tile * cuda.blockDim.x] = value
        ik.stop(p, t, "store", tile)
        ik.stop(p, whole, "tile", tile)
    ik.mark(p, "done")
    ik.finish(p)


def run(buffer: Buffer, prof: Any, grid: int, count: int) -> None:
    """Launch it once, with `grid` blocks of two warps and `count` tiles for each."""
    data = cuda.to_device(np.zeros(grid * count * _THREADS, np.float32))
    with buffer.launch("example"):
        tiles[grid, _THREADS](data, count, prof)
    cuda.synchronize()
