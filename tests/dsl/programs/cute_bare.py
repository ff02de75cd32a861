"""`loop` and `nested` of cute_kernels without anything of ours in them: what they cost is measured against these."""

# ruff: noqa: ANN001, ANN201, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
import cutlass
import cutlass.cute as cute
from cutlass import Int32


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
