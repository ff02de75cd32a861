"""Kernels in Numba-CUDA that record in every way there is. Simulated or compiled, as NUMBA_ENABLE_CUDASIM says."""

# ruff: noqa: TID253
from __future__ import annotations

from typing import Any

from numba import cuda

from warplens.intrakernel.dsl import numba as ik


def many(out: Any, count: Any, prof: Any) -> None:
    """`count` regions, one after the other."""
    p = ik.profiler(prof)
    for i in range(count):
        t = ik.start(p)
        out[cuda.threadIdx.x] = i
        ik.stop(p, t, "load", i * 3 + cuda.blockIdx.x)
    ik.finish(p)


def many_bare(out: Any, count: Any, prof: Any) -> None:
    """The same without payloads, which rings have no room for."""
    p = ik.profiler(prof)
    for i in range(count):
        t = ik.start(p)
        out[cuda.threadIdx.x] = i
        ik.stop(p, t, "load")
    ik.mark(p, "store")
    ik.finish(p)


@cuda.jit(device=True, inline="always")
def inner(p: Any, value: Any) -> Any:
    """A device function that records."""
    t = ik.start(p)
    doubled = value * 2
    ik.stop(p, t, "inner")
    return doubled


def everything(out: Any, count: Any, prof: Any) -> None:
    """Regions nested, in loops and branches, in a function that is called, and regions that cross."""
    p = ik.profiler(prof)
    total = 0
    whole = ik.start(p)
    for i in range(count):
        t = ik.start(p)
        total += i
        ik.stop(p, t, "load", 7)
        if i % 2 == 0:
            t = ik.start(p)
            total += 100
            ik.stop(p, t, "even")
        else:
            ik.mark(p, "odd", i)
    left = count
    while left > 0:
        t = ik.start(p)
        left -= 1
        ik.stop(p, t, "while")
    ik.stop(p, whole, "outer")
    total = inner(p, total)
    first = ik.start(p)
    second = ik.start(p)
    ik.stop(p, first, "first")
    ik.stop(p, second, "second", total, True)
    ik.mark(p, 200)
    out[cuda.threadIdx.x] = total
    ik.finish(p)


def leaves(out: Any, count: Any, prof: Any) -> None:
    """Blocks with an odd number return early."""
    p = ik.profiler(prof)
    t = ik.start(p)
    out[cuda.threadIdx.x] = 1
    ik.stop(p, t, "load")
    if cuda.blockIdx.x % 2 == 1:
        return
    t = ik.start(p)
    out[cuda.threadIdx.x] = 2
    ik.stop(p, t, "store")
    ik.finish(p)


def loop(out: Any, count: Any, prof: Any) -> None:
    """One region in a loop that cannot be unrolled, for its end hangs on data: it costs what the loop is longer than without it."""
    p = ik.profiler(prof)
    total = out[cuda.threadIdx.x]
    i = 0
    while total > 0:
        t = ik.start(p)
        total = total * out[i] + total
        i += 1
        ik.stop(p, t, "load")
    out[cuda.threadIdx.x] = total
    ik.finish(p)


def loop_payload(out: Any, count: Any, prof: Any) -> None:
    """The same with a payload."""
    p = ik.profiler(prof)
    total = out[cuda.threadIdx.x]
    i = 0
    while total > 0:
        t = ik.start(p)
        total = total * out[i] + total
        i += 1
        ik.stop(p, t, "load", i)
    out[cuda.threadIdx.x] = total
    ik.finish(p)


def loop_literal(out: Any, count: Any, prof: Any) -> None:
    """The same with a payload that is a literal."""
    p = ik.profiler(prof)
    total = out[cuda.threadIdx.x]
    i = 0
    while total > 0:
        t = ik.start(p)
        total = total * out[i] + total
        i += 1
        ik.stop(p, t, "load", 7)
    out[cuda.threadIdx.x] = total
    ik.finish(p)
