"""Runs kernels of `numba_kernels.py` in Numba's simulator: python numba_simulate.py CASE; prints what was recorded, as JSON."""

# ruff: noqa: TID253
from __future__ import annotations

import json
import struct
import sys
from typing import Any

import numpy as np
from numba import cuda

from tests.dsl.decoded import told
from tests.dsl.programs import numba_kernels as kernels
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl import numba as ik

TAGS = ("load", "store", "inner", "outer", "even", "odd", "while", "first", "second")
OUT = np.zeros(128, np.int32)


def run(kernel: Any, grid: Any, block: Any, count: int, buffer: Any, **options: Any) -> Any:
    with buffer.launch("test"):
        cuda.jit(kernel)[grid, block](OUT, count, ik.bind(buffer, **options))
    return told(buffer)


def overflow() -> Any:
    return run(kernels.many, 2, 64, 10, allocate(2, 2, slots=4, tags=TAGS, device="cpu"))


def grid() -> Any:
    return run(kernels.many, (2, 3, 2), (8, 8, 1), 1, allocate((2, 3, 2), 2, tags=TAGS, device="cpu"))


def everything() -> Any:
    return {
        **run(kernels.everything, 2, 32, 3, allocate(2, tags=TAGS, device="cpu")),
        "out": OUT[:32].tolist(),
    }


def launches() -> Any:
    buffer = allocate(3, slots=8, tags=TAGS, device="cpu")
    return [
        run(kernels.many, blocks, 2, count, buffer, generation=True)
        for blocks, count in ((3, 8), (3, 3), (2, 5))
    ]


def leaves() -> Any:
    buffer = allocate(4, tags=TAGS, device="cpu")
    run(kernels.many, 4, 2, 5, buffer)  # an older launch, whose records lie behind those of units without end
    return run(kernels.leaves, 4, 2, 0, buffer)


def sampled() -> Any:
    return run(kernels.many, 7, 2, 2, allocate(7, tags=TAGS, device="cpu", sample_blocks=3))


def other_warps() -> Any:
    return run(kernels.many, 2, 128, 2, allocate(2, warps=(1, 3), tags=TAGS, device="cpu"))


def claim() -> Any:
    return run(kernels.many, 5, 2, 2, allocate(5, units=3, tags=TAGS, device="cpu", mode="claim"))


def too_small() -> Any:
    buffer = allocate(3, tags=TAGS, device="cpu")
    told = run(kernels.many, 5, 2, 1, buffer)
    return [len(told["units"]), *struct.unpack_from("<II", buffer.read(), 136)]


def some_launches() -> Any:
    buffer = allocate(3, tags=TAGS, device="cpu", sample_launches=2, mode="claim")
    return [run(kernels.many, 3, 2, count, buffer) for count in (1, 2, 3)]


def ring() -> Any:
    return run(kernels.many_bare, 2, 2, 11, allocate(2, slots=4, tags=TAGS, device="cpu", mode="smem"))


def off() -> Any:
    buffer = allocate(1, tags=TAGS, device="cpu")
    before = buffer.read()
    cuda.jit(kernels.everything)[1, 2](OUT, 3, ik.bind(buffer, enabled=False))
    return {"same": buffer.read() == before, "out": int(OUT[0])}


def fraction(out: Any, count: Any, prof: Any) -> None:
    """A region whose payload is no integer."""
    p = ik.profiler(prof)
    t = ik.start(p)
    ik.stop(p, t, "load", count * 1.5)
    ik.finish(p)


def wrong() -> Any:
    said = []
    for tags, mode in ((("other",), "slices"), (TAGS, "smem")):
        try:
            run(kernels.many, 1, 1, 1, allocate(2, tags=tags, device="cpu", mode=mode))
            said.append("nothing")
        except Exception as error:
            said.append(str(error))
    try:
        run(fraction, 1, 1, 1, allocate(2, tags=TAGS, device="cpu"))
    except Exception as error:
        said.append(str(error))
    return said


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
