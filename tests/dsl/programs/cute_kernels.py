"""Kernels in CuTe DSL that record in every shape of control flow; each returns nothing and is launched by a function of its name + `_host`.

CuTe DSL reads the source of kernels, annotations included: no future annotations here.
"""

# ruff: noqa: ANN001, ANN201, ANN202, ANN204, SIM117, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from warplens.intrakernel.dsl.cute import finish, mark, profiler, region, start, stop


@cute.kernel
def outside_in(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    value = out[tidx]
    with region(p, "load"):
        out[tidx] = value + Float32(1.0)
    finish(p)


@cute.kernel
def inside_out(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    with region(p, "load"):
        value = out[tidx] + Float32(1.0)
    if tidx < 64:
        value = value * Float32(3.0)
    with region(p, "store"):
        out[tidx] = value
    finish(p)


@cute.kernel
def branch(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    value = out[tidx]
    with region(p, "outer"):
        if tidx < n:
            value = value + Float32(1.0)
    if value > Float32(0.5):
        with region(p, "even"):
            value = value * Float32(2.0)
    else:
        with region(p, "odd", payload=n):
            more = value - Float32(2.0)
            value = more * more
    out[tidx] = value
    finish(p)


@cute.kernel
def loop(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    acc = out[at]
    for i in cutlass.range(n, unroll=1):
        with region(p, "load"):
            acc = acc + out[at + i] * acc
    out[at] = acc
    finish(p)


@cute.kernel
def loop_payload(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    acc = out[at]
    for i in cutlass.range(n, unroll=1):
        with region(p, "load", payload=i):
            acc = acc + out[at + i] * acc
    out[at] = acc
    finish(p)


@cute.kernel
def loop_literal(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    acc = out[at]
    for i in cutlass.range(n, unroll=1):
        with region(p, "load", payload=7):
            acc = acc + out[at + i] * acc
    out[at] = acc
    finish(p)


@cute.kernel
def loop_zero(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    acc = out[at]
    for i in cutlass.range(n, unroll=1):
        with region(p, "zero"):
            acc = acc + out[at + i] * acc
    out[at] = acc
    finish(p)


@cute.kernel
def while_loop(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    i = Int32(0)
    acc = Float32(0.0)
    while i < n:
        with region(p, "while", payload=i):
            acc = acc + out[tidx + i]
        i = i + 1
    out[tidx] = acc
    finish(p)


@cute.kernel
def nested(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    acc = out[tidx]
    with region(p, "outer"):
        for i in cutlass.range(n, unroll=1):
            with region(p, "inner"):
                with region(p, "load"):
                    more = out[tidx + i]
                if tidx < 300:
                    acc = acc + more
    out[tidx] = acc
    finish(p)


@cute.kernel
def roles(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    value = out[tidx]
    if warp == 0:
        for i in cutlass.range(n, unroll=1):
            with region(p, "load", payload=i):
                value = value + Float32(1.0)
                if value > Float32(9.0):
                    with region(p, "inner"):
                        value = value * Float32(0.5)
    else:
        with region(p, "compute"):
            value = value * Float32(2.0)
    out[tidx] = value
    finish(p)


@cute.jit
def _accumulate(p, out: cute.Tensor, at: Int32, acc: Float32):
    with region(p, "inner"):
        acc = acc + out[at] * Float32(2.0)
    return acc


@cute.kernel
def helper(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    acc = _accumulate(p, out, tidx, Float32(0.0))
    for i in cutlass.range(n, unroll=1):
        acc = _accumulate(p, out, tidx + i, acc)
    out[tidx] = acc
    finish(p)


@cute.kernel
def elect(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    value = out[tidx]
    with region(p, "outer"), cute.arch.elect_one():
        with region(p, "inner"):
            out[tidx] = value + Float32(1.0)
    out[tidx + 1] = value
    finish(p)


@cute.kernel
def tokens(out: cute.Tensor, n: Int32, prof):
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    first = start(p)
    value = out[tidx]
    second = start(p)
    stop(p, first, "first")
    if tidx < n:
        value = value * Float32(2.0)
        stop(p, second, "second", payload=n)
    else:
        mark(p, "odd", payload=-1)
    out[tidx] = value
    mark(p, 200)
    finish(p)


class Pipeline:
    """A kernel that is a method, with stages that are known while it is compiled."""

    def __init__(self) -> None:
        self.stages = 3

    @cute.kernel
    def kernel(self, out: cute.Tensor, n: Int32, prof):
        p = profiler(prof)
        tidx, _, _ = cute.arch.thread_idx()
        acc = Float32(0.0)
        with region(p, "outer"):
            for stage in cutlass.range_constexpr(self.stages):
                with region(p, "load", payload=stage):
                    acc = _accumulate(p, out, tidx + stage, acc)
            for i in cutlass.range(n, unroll=1):
                if i % 2 == 0:
                    with region(p, "even"):
                        acc = acc * Float32(1.5)
                        out[tidx] = acc + Float32(1.0)
                else:
                    with region(p, "odd"):
                        acc = acc - Float32(1.5)
        out[tidx] = acc
        finish(p)

    @cute.jit
    def __call__(self, out: cute.Tensor, n: Int32, prof):
        self.kernel(out, n, prof).launch(grid=(4, 1, 1), block=(128, 1, 1))


@cute.kernel
def early(out: cute.Tensor, n: Int32, prof):
    """Warps with an odd number never come to the end."""
    p = profiler(prof)
    tidx, _, _ = cute.arch.thread_idx()
    with region(p, "load"):
        value = out[tidx]
    if cute.arch.warp_idx() % 2 == 0:
        with region(p, "store"):
            out[tidx] = value
        finish(p)


# What a region between begin and end of the named kernels adds: (regions, marks).
RECORDS = {
    "outside_in": (1, 0),
    "inside_out": (2, 0),
    "branch": (3, 0),
    "loop": (1, 0),
    "loop_payload": (1, 0),
    "while_loop": (1, 0),
    "nested": (3, 0),
    "roles": (3, 0),
    "helper": (2, 0),
    "elect": (2, 0),
    "tokens": (2, 2),
    "pipeline": (9, 0),
    "early": (2, 0),
}
