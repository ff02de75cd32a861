"""`loop` and `Pipeline` of cute_kernels without anything of ours in them: what they cost is measured against these."""

# ruff: noqa: ANN001, ANN201, ANN202, ANN204, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32


@cute.kernel
def loop(out: cute.Tensor, n: Int32, prof):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    acc = out[at]
    for i in cutlass.range(n, unroll=1):
        acc = acc + out[at + i] * acc
    out[at] = acc


@cute.kernel
def nested(out: cute.Tensor, n: Int32, prof):
    tidx, _, _ = cute.arch.thread_idx()
    acc = out[tidx]
    for i in cutlass.range(n, unroll=1):
        more = out[tidx + i]
        if tidx < 300:
            acc = acc + more
    out[tidx] = acc


@cute.jit
def _accumulate(out: cute.Tensor, at: Int32, acc: Float32):
    acc = acc + out[at] * Float32(2.0)
    return acc


class Pipeline:
    """See there."""

    def __init__(self) -> None:
        self.stages = 3

    @cute.kernel
    def kernel(self, out: cute.Tensor, n: Int32, prof):
        tidx, _, _ = cute.arch.thread_idx()
        acc = Float32(0.0)
        for stage in cutlass.range_constexpr(self.stages):
            acc = _accumulate(out, tidx + stage, acc)
        for i in cutlass.range(n, unroll=1):
            if i % 2 == 0:
                acc = acc * Float32(1.5)
                out[tidx] = acc + Float32(1.0)
            else:
                acc = acc - Float32(1.5)
        out[tidx] = acc

    @cute.jit
    def __call__(self, out: cute.Tensor, n: Int32, prof):
        self.kernel(out, n, prof).launch(grid=(4, 1, 1), block=(128, 1, 1))
