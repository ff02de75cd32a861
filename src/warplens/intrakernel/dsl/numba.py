"""Numba-CUDA: regions inside `@cuda.jit` kernels, compiled or simulated.

A kernel takes what `bind(buffer)` gives as one argument. `profiler(prof)` at its top begins the recording of each warp,
`finish(p)` at its end completes it; between them `t = start(p)` and `stop(p, t, "load")` enclose a region, and `mark(p, "x")`
records a moment. Numba compiles no `with`, so there is none. Tags are names of the buffer's table or numbers, known while
the kernel is compiled. A warp that returns early leaves its unit without an end: its records are kept.

## Install

`pip install numba-cuda` (0.30). A GPU is needed to run compiled kernels; with `NUMBA_ENABLE_CUDASIM=1`, set before `numba` is
imported, its simulator runs the same kernels on the host and they record into buffers of `allocate(…, device="cpu")`.

## Example

    from numba import cuda
    from warplens import intrakernel
    from warplens.intrakernel.dsl import numba as ik

    @cuda.jit
    def scale(x, prof):
        p = ik.profiler(prof)
        at = cuda.grid(1)
        for i in range(8):
            t = ik.start(p)
            v = x[at]
            ik.stop(p, t, "load")
            t = ik.start(p)
            x[at] = v * 2
            ik.stop(p, t, "store", i)
        ik.finish(p)

    buffer = intrakernel.allocate(grid=64, warps=4, tags=["load", "store"])
    with buffer.launch("scale"):
        scale[64, 128](x, ik.bind(buffer))
    print(buffer.decode().events)

## Overhead

Per region two clock reads and one predicated 16-byte store: 7 to 9 instructions per pass of a loop, 5 to 8 registers in a
small kernel. No local memory and no atomics, but for one per warp in mode `claim`, and where a launch has more warps than the
buffer has places. `bind(buffer, enabled=False)` compiles to the same machine code as a kernel without regions.

## What the compiler may move

Clock reads and records keep their order among each other and with loads and stores. A load that is started before or inside
a region and first used behind it is charged to the region that waits for it; arithmetic that touches no memory may cross a border.
Software pipelining, where the compiler does it, may move loads across marks. The cursor lives in registers of the kernel:
a device function that records must be inlined into it, as small ones are (`@cuda.jit(device=True, inline="always")`),
otherwise the assembler refuses it. `debug=True` and `opt=False` inline nothing.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from warplens.intrakernel import driver, dsl
from warplens.intrakernel.plan import Plan, plan_of

if TYPE_CHECKING:
    from warplens.intrakernel.buffers import Buffer
    from warplens.intrakernel.device.numba import finish, mark, profiler, start, stop

__all__ = ["bind", "profiler", "start", "stop", "mark", "finish", "ways", "example"]


class NumbaBinding(NamedTuple):
    """A buffer as a kernel's argument: its address.

    Each plan has a class that knows how to record.
    """

    pointer: int


@cache
def _binding_of(plan: Plan) -> type[NumbaBinding]:
    # Numba compiles for the types of arguments, and a named tuple's class is one: a plan needs no argument that costs.
    return type("NumbaBinding", (NumbaBinding,), {"__slots__": (), "plan": plan})


def bind(buffer: Buffer, *, enabled: bool = True, generation: bool = False) -> NumbaBinding:
    """Make the argument by which a kernel records into a buffer, the last one in the example above.

    Args:
        buffer: what `warplens.intrakernel.allocate` made.
        enabled: False records nothing, and the kernel compiles to what it is without regions.
        generation: put the launch's number into every record, so that records of an older launch are recognized one by one.
    """
    _device()  # Numba looks for what is new before it compiles a kernel, not while it does
    return _binding_of(plan_of(buffer, enabled=enabled, generation=generation))(buffer.pointer)


def __getattr__(name: str) -> Any:
    """Import the functions for kernels at their first use.

    They need Numba, and describing this language does not.
    """
    if name in __all__:
        return getattr(_device(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _device() -> ModuleType:
    from numba import config

    return import_module(
        f"warplens.intrakernel.device.{'numba_simulated' if config.ENABLE_CUDASIM else 'numba'}"
    )


def ways() -> dict[str, str | None]:
    """List the ways to run kernels, best first, with what each lacks here."""
    lacks = None if find_spec("numba") and find_spec("numba_cuda") else "numba-cuda is not installed"
    return {"gpu": lacks or driver.why_no_device(), "simulator": lacks}


def example(way: str) -> Buffer:
    """Run the example kernel, and return its buffer."""
    from warplens.intrakernel.buffers import allocate

    if way == "simulator":
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # read when Numba is imported
    device, library = ("cpu", "") if way == "simulator" else ("cuda", "numba")
    buffer = allocate(
        grid=dsl.EXAMPLE_GRID, warps=2, slots=32, tags=dsl.EXAMPLE_TAGS, device=device, library=library
    )
    module = import_module("warplens.intrakernel.examples.numba")
    module.run(buffer, bind(buffer), dsl.EXAMPLE_GRID, dsl.EXAMPLE_TILES)
    return buffer
