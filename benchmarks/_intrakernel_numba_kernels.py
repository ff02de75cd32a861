"""Numba-CUDA kernels for benchmarks: a loop with a region, and with an event of the reference design."""

# ruff: noqa: TID253
# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import cuda
from numba.core import types
from numba.core.extending import intrinsic

from _intrakernel_gpu import BEGIN_PTX, end_ptx
from warplens.intrakernel.dsl import numba as ik

TAGS = ("body",)
_WIDE = ir.IntType(64)


@intrinsic(target="cuda")
def _begin(context: Any, slots: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        text = ir.InlineAsm(ir.FunctionType(_WIDE, [_WIDE]), BEGIN_PTX, "=l,l,~{memory}", side_effect=True)
        return builder.call(text, values)

    return types.uint64(types.uint64), emit


@intrinsic(target="cuda")
def _end(context: Any, slot: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        text = ir.InlineAsm(
            ir.FunctionType(ir.VoidType(), [_WIDE]), end_ptx("$0"), "l,~{memory}", side_effect=True
        )
        builder.call(text, values)
        return context.get_dummy_value()

    return types.void(types.uint64), emit


def loop(out: Any, count: Any, prof: Any) -> None:
    """`count` regions around next to nothing."""
    p = ik.profiler(prof)
    at = cuda.grid(1)
    value = out[at]
    for _ in range(count):
        t = ik.start(p)
        value = value * value + value
        ik.stop(p, t, "body")
    out[at] = value
    ik.finish(p)


def payload(out: Any, count: Any, prof: Any) -> None:
    """The same with payloads."""
    p = ik.profiler(prof)
    at = cuda.grid(1)
    value = out[at]
    for i in range(count):
        t = ik.start(p)
        value = value * value + value
        ik.stop(p, t, "body", i)
    out[at] = value
    ik.finish(p)


def reference(out: Any, count: Any, slots: Any) -> None:
    """The same with events of the reference design; `slots` is an address."""
    at = cuda.grid(1)
    value = out[at]
    for _ in range(count):
        slot = _begin(slots)
        value = value * value + value
        _end(slot)
    out[at] = value
