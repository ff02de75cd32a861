"""Times a scope of Proton, Triton's in-kernel profiler, per pass of a loop: _intrakernel_proton.py PASSES.

A separate process, since a compiler that does not know Proton's operations ends the process that uses them.
"""

# ruff: noqa: ANN001, ANN202, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, import-untyped, import-not-found, unused-ignore"
from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
import triton.profiler as proton
import triton.profiler.language as pl

from _intrakernel_gpu import per_pass

BLOCKS, WARPS = 64, 4  # as in intrakernel_triton


@triton.jit
def bare(out, count):
    """`count` passes of next to nothing."""
    at = out.to(tl.pointer_type(tl.float32)) + tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(at)
    for _ in tl.range(0, count, loop_unroll_factor=1):
        value = value * 1.0001 + 1.0
    tl.store(at, value)


@triton.jit
def scoped(out, count):
    """The same with a scope around each."""
    at = out.to(tl.pointer_type(tl.float32)) + tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(at)
    for _ in tl.range(0, count, loop_unroll_factor=1):
        with pl.scope("body"):
            value = value * 1.0001 + 1.0
    tl.store(at, value)


def main(count: int) -> float:
    """Measure both; what Proton records is thrown away."""
    import torch

    out = torch.zeros(BLOCKS * 128, device="cuda")

    def launch(passes: int, kernel: Any) -> None:
        kernel[(BLOCKS,)](out.data_ptr(), passes, num_warps=WARPS)

    without = per_pass({"bare": partial(launch, kernel=bare)}, torch.cuda.synchronize, count)["bare"]
    pl.enable_semantic("triton")
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
        session = proton.start(str(Path(folder) / "proton"), data="trace", backend="instrumentation")
        with_it = per_pass({"scope": partial(launch, kernel=scoped)}, torch.cuda.synchronize, count)["scope"]
        proton.finalize(session)
    return with_it - without


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
