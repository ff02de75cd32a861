"""Runs kernels of `triton_kernels.py` in Triton's interpreter: python triton_interpret.py CASE; prints what was recorded, as JSON."""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from typing import Any

from tests.dsl.decoded import told
from tests.dsl.programs import triton_kernels as kernels
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl import triton as ik

TAGS = ("load", "store", "inner", "outer", "even", "odd", "while", "first", "second")
OUT = (ctypes.c_int32 * 64)()
ADDRESS = ctypes.addressof(OUT)


def run(kernel: Any, grid: tuple[int, ...], count: int, buffer: Any, **options: Any) -> Any:
    with buffer.launch("test"):
        kernel[grid](ADDRESS, count, ik.bind(buffer, **options))
    return told(buffer)


def overflow() -> Any:
    return run(kernels.many, (3,), 10, allocate(3, slots=4, tags=TAGS, device="cpu"))


def grid() -> Any:
    return run(kernels.many, (2, 3, 2), 1, allocate((2, 3, 2), tags=TAGS, device="cpu"))


def everything() -> Any:
    return {**run(kernels.everything, (2,), 3, allocate(2, tags=TAGS, device="cpu")), "out": list(OUT[:2])}


def launches() -> Any:
    buffer = allocate(4, slots=8, tags=TAGS, device="cpu")
    return [
        run(kernels.many, (programs,), count, buffer, generation=True)
        for programs, count in ((4, 8), (4, 3), (2, 5))
    ]


def leaves() -> Any:
    buffer = allocate(4, tags=TAGS, device="cpu")
    run(kernels.many, (4,), 5, buffer)  # an older launch, whose records lie behind those of units without end
    return run(kernels.leaves, (4,), 0, buffer)


def sampled() -> Any:
    return run(kernels.many, (7,), 2, allocate(7, tags=TAGS, device="cpu", sample_blocks=3))


def other_warps() -> Any:
    return run(kernels.many, (2,), 2, allocate(2, warps=(1, 2), tags=TAGS, device="cpu"))


def claim() -> Any:
    return run(kernels.many, (5,), 2, allocate(5, units=3, tags=TAGS, device="cpu", mode="claim"))


def too_small() -> Any:
    buffer = allocate(3, tags=TAGS, device="cpu")
    told = run(kernels.many, (5,), 1, buffer)
    return [len(told["units"]), *struct.unpack_from("<II", buffer.read(), 136)]


def some_launches() -> Any:
    buffer = allocate(3, tags=TAGS, device="cpu", sample_launches=2, mode="claim")
    return [run(kernels.many, (3,), count, buffer) for count in (1, 2, 3)]


def ring() -> Any:
    return run(kernels.many_bare, (2,), 11, allocate(2, slots=4, tags=TAGS, device="cpu", mode="smem"))


def cycles() -> Any:
    return run(kernels.many, (2,), 50, allocate(2, tags=TAGS, device="cpu", clock="clock"))


def off() -> Any:
    buffer = allocate(2, tags=TAGS, device="cpu")
    before = buffer.read()
    kernels.many[(2,)](ADDRESS, 4, ik.bind(buffer, enabled=False))
    return {"same": buffer.read() == before, "out": OUT[0]}


def wrong() -> Any:
    said = []
    for tags, mode, kernel in (
        (("other",), "slices", kernels.many),
        (TAGS, "smem", kernels.many),
        (TAGS, "smem", kernels.loop),
    ):
        try:
            buffer = allocate(2, tags=tags, device="cpu", mode=mode)
            kernel[(1,)](ADDRESS, 1, ik.bind(buffer, generation=kernel is kernels.loop))
            said.append("nothing")
        except Exception as error:
            said.append(f"{error} {error.__cause__}")
    good = allocate(2, tags=TAGS, device="cpu")
    for prof in (good, good.pointer, good.memory):
        try:
            kernels.many[(1,)](ADDRESS, 1, prof)
            said.append("nothing")
        except Exception as error:
            said.append(f"{error} {error.__cause__}")
    for payload in (1.5, 2):
        try:
            kernels.paid[(1,)](ik.bind(good), payload)
            said.append("nothing")
        except Exception as error:
            said.append(f"{error} {error.__cause__}")
    return said


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
