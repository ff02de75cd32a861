"""Kernels in Triton that record in every way there is. Interpreted or compiled, as TRITON_INTERPRET says."""

# Triton reads the source of kernels, annotations included, and knows none of typing's.
# ruff: noqa: ANN001, ANN201, ANN202, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import triton
import triton.language as tl

from warplens.intrakernel.dsl import triton as ik


@triton.jit
def many(out, count, prof):
    """`count` regions, one after the other."""
    p = ik.profiler(prof)
    for i in range(count):
        with ik.region(p, "load", payload=i * 3 + tl.program_id(0)):
            tl.store(out.to(tl.pointer_type(tl.int32)), i)
    ik.finish(p)


@triton.jit
def many_bare(out, count, prof):
    """The same without payloads, which rings have no room for."""
    p = ik.profiler(prof)
    for i in range(count):
        with ik.region(p, "load"):
            tl.store(out.to(tl.pointer_type(tl.int32)), i)
    ik.mark(p, "store")
    ik.finish(p)


@triton.jit
def _inner(p, value):
    with ik.region(p, "inner"):
        doubled = value * 2
    return doubled


@triton.jit
def everything(out, count, prof):
    """Regions nested, in loops and branches, in a function that is called, by token, that cross; names of both sides."""
    p = ik.profiler(prof)
    base = out.to(tl.pointer_type(tl.int32)) + tl.program_id(0)
    outside = count + 1
    total = 0
    with ik.region(p, "outer"):
        inside = outside + 1
        for i in range(count):
            with ik.region(p, "load", payload=7):
                total += i
            if i % 2 == 0:
                with ik.region(p, "even"):
                    total += 100
            else:
                ik.mark(p, "odd", payload=i)
        left = count
        while left > 0:
            with ik.region(p, "while"):
                left -= 1
    total = _inner(p, total + inside)
    first = ik.start(p)
    second = ik.start(p)
    ik.stop(p, first, "first")
    ik.stop(p, second, "second", crossing=True, payload=total)
    ik.mark(p, 200)
    tl.store(base, total)
    ik.finish(p)


@triton.jit
def leaves(out, count, prof):
    """Programs with an odd number return early."""
    p = ik.profiler(prof)
    with ik.region(p, "load"):
        tl.store(out.to(tl.pointer_type(tl.int32)), 1)
    if tl.program_id(0) % 2 == 1:
        return
    with ik.region(p, "store"):
        tl.store(out.to(tl.pointer_type(tl.int32)), 2)
    ik.finish(p)


@triton.jit
def loop(out, count, prof):
    """One region in a loop that nothing unrolls: what it costs is what the loop is longer than `loop` without it."""
    p = ik.profiler(prof)
    base = out.to(tl.pointer_type(tl.float32)) + tl.arange(0, 128)
    total = tl.zeros((128,), tl.float32)
    for i in tl.range(0, count, loop_unroll_factor=1):
        tl.debug_barrier()
        with ik.region(p, "load"):
            total = total * tl.load(base + i * 128) + total
    tl.store(base, total)
    ik.finish(p)


@triton.jit
def loop_payload(out, count, prof):
    """The same with a payload."""
    p = ik.profiler(prof)
    base = out.to(tl.pointer_type(tl.float32)) + tl.arange(0, 128)
    total = tl.zeros((128,), tl.float32)
    for i in tl.range(0, count, loop_unroll_factor=1):
        tl.debug_barrier()
        with ik.region(p, "load", payload=i):
            total = total * tl.load(base + i * 128) + total
    tl.store(base, total)
    ik.finish(p)


@triton.jit
def loop_literal(out, count, prof):
    """The same with a payload that is a literal."""
    p = ik.profiler(prof)
    base = out.to(tl.pointer_type(tl.float32)) + tl.arange(0, 128)
    total = tl.zeros((128,), tl.float32)
    for i in tl.range(0, count, loop_unroll_factor=1):
        tl.debug_barrier()
        with ik.region(p, "load", payload=7):
            total = total * tl.load(base + i * 128) + total
    tl.store(base, total)
    ik.finish(p)


@triton.jit
def paid(prof, number):
    """A region with a payload of whatever kind."""
    p = ik.profiler(prof)
    with ik.region(p, "load", payload=number):
        pass
    ik.finish(p)
