"""Triton kernels for benchmarks: attention, and loops with a region, a reference event or a Proton scope.

Arrays are tensors or addresses: the interpreter runs the same kernels on memory of the host.
"""

# Triton reads the source of kernels, annotations included, and knows none of typing's.
# ruff: noqa: ANN001, ANN202, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl

from _intrakernel_gpu import BEGIN_PTX, end_ptx
from warplens.intrakernel.dsl import triton as ik

LOOP_TAGS = ("body",)
# What one pass over a tile of keys and values does, in its order.
ATTENTION_TAGS = ("keys", "scores", "maximum", "weights", "rescale", "sums", "values", "product")
_BEGIN, _END = tl.constexpr(BEGIN_PTX), tl.constexpr(end_ptx("$1") + " mov.u32 $0, 0;")


@triton.jit
def loop(out, count, prof, PAYLOAD: tl.constexpr):
    """`count` regions around next to nothing."""
    p = ik.profiler(prof)
    at = out.to(tl.pointer_type(tl.float32)) + tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(at)
    for i in tl.range(0, count, loop_unroll_factor=1):
        if PAYLOAD:
            with ik.region(p, "body", payload=i):
                value = value * 1.0001 + 1.0
        else:
            with ik.region(p, "body"):
                value = value * 1.0001 + 1.0
    tl.store(at, value)
    ik.finish(p)


@triton.jit
def reference(out, count, slots):
    """The same loop with events of the reference design."""
    at = out.to(tl.pointer_type(tl.float32)) + tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(at)
    for _ in tl.range(0, count, loop_unroll_factor=1):
        slot = tl.inline_asm_elementwise(
            _BEGIN, "=l,l,~{memory}", [slots], dtype=tl.int64, is_pure=False, pack=1
        )
        value = value * 1.0001 + 1.0
        tl.inline_asm_elementwise(_END, "=r,l,~{memory}", [slot], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(at, value)


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    length,
    scale,
    prof,
    KIND: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Make softmax(q kᵀ · scale) v of one head: q, k, v and out are (heads, length, WIDTH) of KIND, `scale` holds log2(e).

    A program makes ROWS rows of one head, COLUMNS keys and values at a time; the grid is (length / ROWS, heads).
    """
    p = ik.profiler(prof)
    kind = tl.pointer_type(KIND)
    head = tl.program_id(1).to(tl.int64) * length * WIDTH
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column, across = tl.arange(0, COLUMNS), tl.arange(0, WIDTH)
    queries = tl.load(q.to(tl.int64).to(kind) + head + row[:, None] * WIDTH + across[None, :])
    most = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    result = tl.zeros((ROWS, WIDTH), tl.float32)
    for j in range(0, length, COLUMNS):
        with ik.region(p, "keys", payload=j):
            keys = tl.load(k.to(tl.int64).to(kind) + head + (j + column)[None, :] * WIDTH + across[:, None])
        with ik.region(p, "scores", payload=j):
            scores = tl.dot(queries, keys) * scale
        with ik.region(p, "maximum", payload=j):
            larger = tl.maximum(most, tl.max(scores, 1))
        with ik.region(p, "weights", payload=j):
            weights = tl.exp2(scores - larger[:, None])
        with ik.region(p, "rescale", payload=j):
            shrunk = tl.exp2(most - larger)
            result = result * shrunk[:, None]
        with ik.region(p, "sums", payload=j):
            total = total * shrunk + tl.sum(weights, 1)
        with ik.region(p, "values", payload=j):
            values = tl.load(v.to(tl.int64).to(kind) + head + (j + column)[:, None] * WIDTH + across[None, :])
        with ik.region(p, "product", payload=j):
            result = tl.dot(weights.to(KIND), values, result)
        most = larger
    tl.store(
        out.to(tl.int64).to(kind) + head + row[:, None] * WIDTH + across[None, :],
        (result / total[:, None]).to(KIND),
    )
    ik.finish(p)
