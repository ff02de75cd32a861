"""Triton: regions inside `@triton.jit` kernels, compiled or interpreted.

A kernel takes what `bind(buffer)` gives as one argument. `profiler(prof)` at its top begins the recording of that program,
`finish(p)` at its end completes it; between them `with region(p, "load"):`, `start` and `stop` for regions that are no
block of code, and `mark`. Every name that is bound outside a region is visible inside, and the other way round. Tags are
names of the buffer's table or numbers. A kernel that returns early leaves its unit without an end: its records are kept.

## Install

`pip install triton` (3.9). A GPU is needed to run compiled kernels; with `TRITON_INTERPRET=1`, set before `triton` is
imported, the interpreter runs the same kernels on the host and they record into buffers of `allocate(…, device="cpu")`.

## Example

    import triton
    import triton.language as tl
    from warplens import intrakernel
    from warplens.intrakernel.dsl import triton as ik

    @triton.jit
    def scale(x, n, prof, N: tl.constexpr):
        p = ik.profiler(prof)
        at = tl.program_id(0) * N + tl.arange(0, N)
        for i in range(n):
            with ik.region(p, "load"):
                v = tl.load(x + at)
            with ik.region(p, "store", payload=i):
                tl.store(x + at, v * 2)
        ik.finish(p)

    buffer = intrakernel.allocate(grid=64, tags=["load", "store"])
    with buffer.launch("scale"):
        scale[(64,)](x, 8, ik.bind(buffer), N=128)
    print(buffer.decode().events)

## Overhead

Per region two clock reads and one predicated 16-byte store: 7 to 9 instructions per pass of a loop. 2 to 8 registers in a
small kernel; a pipelined GEMM with three regions took 4 to 12 more, attention with eight in each pass 2 to 36: regions keep
apart what the compiler would have mixed. No local memory and no atomics, but for one per warp in mode `claim`, and where a
launch has more warps than the buffer has places. About 70 instructions for a whole kernel.
`bind(buffer, enabled=False)` compiles to the same machine code as a kernel without regions.

## What the compiler may move

Clock reads and records keep their order among each other and with loads and stores that the compiler does not pipeline.
Software pipelining (`num_stages`) starts loads iterations before the region that they are written in, and arithmetic that
touches no memory may cross a border: a region around `tl.load` in a pipelined loop times the wait for the data. Unrolling may
change, since the compiler counts a record as one instruction: `tl.range(…, loop_unroll_factor=1)` keeps it. Loops with
`warp_specialize=True` are not supported, and neither are regions in `noinline` functions (the assembler refuses them).
"""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from warplens.intrakernel import driver, dsl, ptx
from warplens.intrakernel.plan import plan_of

if TYPE_CHECKING:
    from warplens.intrakernel.buffers import Buffer
    from warplens.intrakernel.device.triton import finish, mark, profiler, region, start, stop

__all__ = ["bind", "profiler", "region", "start", "stop", "mark", "finish", "ways", "example"]


class TritonBinding(NamedTuple):
    """A buffer as a kernel's argument: its address, and as a constant of the kernel how to record."""

    pointer: Any
    plan: Any


def bind(buffer: Buffer, *, enabled: bool = True, generation: bool = False) -> TritonBinding:
    """Make the argument by which a kernel records into a buffer, the last one in the example above.

    Args:
        buffer: what `warplens.intrakernel.allocate` made.
        enabled: False records nothing, and the kernel compiles to what it is without regions.
        generation: put the launch's number into every record, so that records of an older launch are recognized one by one.
    """
    import triton.language as tl

    plan = plan_of(buffer, enabled=enabled, generation=generation)
    # Triton keeps compiled kernels on disk by their constants: what we emit is one of them.
    return TritonBinding(buffer.pointer, tl.constexpr(replace(plan, revision=ptx.REVISION if enabled else 0)))


def __getattr__(name: str) -> Any:
    """Import the functions for kernels at their first use.

    They need Triton, and describing this language does not.
    """
    if name in __all__:
        return getattr(import_module("warplens.intrakernel.device.triton"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def ways() -> dict[str, str | None]:
    """List the ways to run kernels, best first, with what each lacks here."""
    lacks = None if find_spec("triton") else "triton is not installed"
    torch = None if find_spec("torch") else "Triton runs kernels on a GPU with torch, which is not installed"
    return {"gpu": lacks or torch or driver.why_no_device(), "interpreter": lacks}


def example(way: str) -> Buffer:
    """Run the example kernel, and return its buffer."""
    from warplens.intrakernel.buffers import allocate

    if way == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated
    device = "cpu" if way == "interpreter" else "cuda"
    buffer = allocate(grid=dsl.EXAMPLE_GRID, warps=1, slots=32, tags=dsl.EXAMPLE_TAGS, device=device)
    module = import_module("warplens.intrakernel.examples.triton")
    module.run(buffer, bind(buffer), dsl.EXAMPLE_GRID, dsl.EXAMPLE_TILES)
    return buffer
