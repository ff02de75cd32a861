"""A loop with a scope of Proton, Triton's own in-kernel profiler, for the ns of one beside a region's."""

# ruff: noqa: ANN001, ANN202, TID253
# mypy: disable-error-code="no-untyped-def, no-untyped-call, import-untyped, import-not-found"
from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import triton
import triton.language as tl
import triton.profiler as proton
import triton.profiler.language as pl


@triton.jit
def scoped(out, count):
    """`count` scopes around next to nothing."""
    at = out.to(tl.pointer_type(tl.float32)) + tl.program_id(0) * 128 + tl.arange(0, 128)
    value = tl.load(at)
    for _ in tl.range(0, count, loop_unroll_factor=1):
        with pl.scope("body"):
            value = value * 1.0001 + 1.0
    tl.store(at, value)


def recorded(measure: Callable[[], float]) -> float:
    """Call `measure` while Proton records what kernels do inside; its trace is thrown away."""
    pl.enable_semantic("triton")
    try:
        with tempfile.TemporaryDirectory(prefix="warpline-bench-") as folder:
            session = proton.start(str(Path(folder) / "proton"), data="trace", backend="instrumentation")
            try:
                return measure()
            finally:
                proton.finalize(session)
    finally:
        pl.disable_semantic("triton")
