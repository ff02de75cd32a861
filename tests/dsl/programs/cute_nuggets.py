"""Kernels written for the reference design, with nothing changed but where they import from: python cute_nuggets.py FOLDER.

Writes FOLDER/<kernel>.ptx and .cubin for the architecture that CUTE_DSL_ARCH names. tests/gpu launches `example` without the package.
"""

# ruff: noqa: ANN001, ANN201, ANN202, ANN204, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"
import os
import sys
from pathlib import Path

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64
from cutlass.cute.runtime import make_fake_compact_tensor

from warplens.errors import UsageError
from warplens.intrakernel.nuggets import (
    elected_start,
    elected_stop,
    lane0_warp0_start,
    lane0_warp0_stop,
    profile_region,
    profile_start,
    profile_stop,
    read_globaltimer,
    warp_start,
    warp_stop,
)

TAG_OUTER = 0
TAG_INNER = 1


class Example:
    """The complete example of the reference design's README."""

    @cute.kernel
    def kernel(self, output, prof_buf, max_events):
        bidx, _, _ = cute.arch.block_idx()

        eid = lane0_warp0_start(prof_buf, max_events)

        for i in cutlass.range(4):
            with profile_region(prof_buf, max_events, Int32(TAG_INNER), bidx):
                output[i] = output[i] * 2.0

        lane0_warp0_stop(prof_buf, eid, Int32(TAG_OUTER), bidx, max_events)

    @cute.jit()
    def __call__(self, output, prof_buf, max_events):
        self.kernel(output, prof_buf, max_events).launch(grid=(4, 1, 1), block=(128, 1, 1))


@cute.kernel
def limitation(output: cute.Tensor, prof_buf: cute.Tensor, max_events: Int32):
    """What its README says does not work: a value from outside, inside; and the other way round."""
    bidx, _, _ = cute.arch.block_idx()
    tidx, _, _ = cute.arch.thread_idx()
    val = output[tidx]
    with profile_region(prof_buf, max_events, Int32(TAG_INNER), bidx):
        output[tidx] = val + 1.0
        more = val * val
    if tidx < 64:
        more = more + 1.0
    output[tidx + 128] = more


@cute.kernel
def loops(output: cute.Tensor, prof_buf: cute.Tensor, max_events: Int32):
    """The first uses stand in a loop and in a branch."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    for i in cutlass.range(max_events, unroll=1):
        if i % 2 == 0:
            with profile_region(prof_buf, max_events, i, bidx):
                output[tidx] = output[tidx] * 2.0
        e = elected_start(prof_buf, max_events)
        output[tidx] = output[tidx] * 3.0
        elected_stop(prof_buf, e, Int32(2), cute.arch.warp_idx(), max_events)


@cute.kernel
def loop(output: cute.Tensor, n: Int32, prof_buf: cute.Tensor):
    """`loop` of `cute_kernels.py`, with a region of the reference design."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    at = bidx * 128 + tidx
    acc = output[at]
    for i in cutlass.range(n, unroll=1):
        with profile_region(prof_buf, 256, 1, bidx):
            acc = acc + output[at + i] * acc
    output[at] = acc


@cute.kernel
def warps(output: cute.Tensor, prof_buf: cute.Tensor, max_events: Int32):
    """One warp, a warp that is known only at run time, and all threads."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    e = warp_start(prof_buf, max_events, target_warp=Int32(2))
    output[tidx] = output[tidx] * 3.0
    warp_stop(prof_buf, e, 3, bidx, max_events, target_warp=Int32(2))
    e = warp_start(prof_buf, max_events, target_warp=max_events)
    output[tidx] = output[tidx] * 3.0
    warp_stop(prof_buf, e, Int32(4), bidx, max_events, target_warp=max_events)
    if tidx < 64:
        e = profile_start(prof_buf, max_events)
        output[tidx] = Float32(read_globaltimer())
        profile_stop(prof_buf, e, Int32(5), tidx, max_events)


@cute.kernel
def elected(output: cute.Tensor, prof_buf: cute.Tensor, max_events: Int32):
    """Outside of `elect_one`, and by the lane that it picks."""
    bidx, _, _ = cute.arch.block_idx()
    e = elected_start(prof_buf, max_events)
    with cute.arch.elect_one():
        inner = elected_start(prof_buf, max_events)
        output[bidx] = output[bidx] * 2.0
        elected_stop(prof_buf, inner, Int32(TAG_INNER), bidx, max_events)
    elected_stop(prof_buf, e, Int32(TAG_OUTER), bidx, max_events)


@cute.kernel
def derived(output: cute.Tensor, prof_buf: cute.Tensor, max_events: Int32):
    """Not the parameter, but a tensor that was made from it."""
    half = cute.local_tile(prof_buf, (512,), (1,))
    with profile_region(half, max_events, 1, 2):
        output[0] = Float32(1.0)


def host(kernel):
    @cute.jit
    def launch(output: cute.Tensor, prof_buf: cute.Tensor, max_events: Int32):
        kernel(output, prof_buf, max_events).launch(grid=(4, 1, 1), block=(128, 1, 1))

    return launch


def main(folder: Path) -> None:
    """Compile all of them."""
    arguments = (
        make_fake_compact_tensor(Float32, (512,)),
        make_fake_compact_tensor(Int64, (1024,)),
        Int32(256),
    )
    functions = {
        "example": Example(),
        "limitation": host(limitation),
        "loops": host(loops),
        "warps": host(warps),
    }
    if os.environ["CUTE_DSL_ARCH"] != "sm_80":  # which has no elect_one
        functions["elected"] = host(elected)
    for name, function in functions.items():
        compiled = cute.compile(function, *arguments, options="--keep-ptx --keep-cubin")
        (folder / f"{name}.ptx").write_text(compiled.__ptx__.rstrip("\0"))
        (folder / f"{name}.cubin").write_bytes(compiled.__cubin__)
    try:
        cute.compile(host(derived), *arguments)
    except UsageError as error:
        print(error)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
