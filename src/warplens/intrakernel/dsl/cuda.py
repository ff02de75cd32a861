"""CUDA C++: regions inside kernels of nvcc, NVRTC, CuPy's RawKernel and PyTorch's inline extensions.

A kernel takes the buffer as `void *` and makes a `warplens::Profiler` of it at its top, which completes the unit when it goes
out of scope, on whatever way out. `WARPLENS_REGION(prof, Tag::load)` times the rest of its block, `prof.start()` and
`prof.stop(token, Tag::load)` what is no block, `prof.mark(Tag::load)` a moment; each takes a payload of 32 bits as its last
argument. The names are one line, `WARPLENS_TAGS(Tag, load, compute)`, that the host reads from the source (`tags`) or makes of
its table (`bind(buffer).tags`). A null pointer records nothing.

With a `__shared__ warplens::Ring<WARPS> ring;` and `Profiler prof(buffer, ring)` records go to shared memory first (mode
`smem`; the latest stay, payloads do not fit in).

## Install

Nothing but warplens: `-I` and the folder that `warplens.intrakernel.include_path()` names, `#include "warplens.cuh"`, C++17
or later, which is CUDA's default from 12.0 on.
Without a GPU the host's compiler makes the same source into kernels that run on the CPU (`warplens_host.h`), one block after
the other: they record with a real clock into buffers of `allocate(…, device="cpu")`.

## Example

    from warplens import intrakernel
    from warplens.intrakernel.dsl import cuda as ik

    source = r'''
    #include "warplens.cuh"
    WARPLENS_TAGS(Tag, load, compute)

    extern "C" __global__ void scale(float *x, int n, void *profile) {
      warplens::Profiler prof(profile);
      for (int i = 0; i < n; ++i) {
        WARPLENS_REGION(prof, Tag::compute, i);
        x[threadIdx.x + i * blockDim.x] *= 2;
      }
    }
    '''
    buffer = intrakernel.allocate(grid=64, warps=4, tags=ik.tags(source))
    scale = cupy.RawKernel(source, "scale", options=ik.bind(buffer).options)
    with buffer.launch("scale"):
        scale((64,), (128,), (x, 8, buffer.pointer))
    print(buffer.decode().events)

nvcc takes the same options; `torch.utils.cpp_extension.load_inline` has `extra_cuda_cflags` for them.

## Overhead

Per region two clock reads and one predicated 16-byte store: 7 instructions per pass of a loop (8 with a payload that is a
literal: it has a register to be put into, as the tag has), at most 8 with a payload and the launch's generation; 8 registers
in the smallest kernel (10 with a ring), none in larger ones, whose own top is as wide. No atomics (one per
warp in mode `claim`), no local memory. The top of the kernel reads the buffer's head, the end writes 40 bytes. With
`-DWARPLENS_INTRAKERNEL_OFF` or `warplens::Profiler<false>` the machine code is what it is without regions.

## What the compiler may move

Stamps and records keep their order among each other and with loads and stores. Arithmetic that touches no memory may cross a
border. A stamp marks when an instruction is issued: a region that only starts an asynchronous copy, or a load whose value is
used behind it, times the start; put the wait into the region. Hand `prof` on by reference to functions that are inlined only:
`noinline` puts its registers into local memory.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from warplens.errors import UsageError
from warplens.intrakernel import driver, dsl
from warplens.intrakernel.headers import include_path, revision
from warplens.intrakernel.plan import plan_of
from warplens.intrakernel.tags import TagTable

if TYPE_CHECKING:
    from warplens.intrakernel.buffers import Buffer

__all__ = ["bind", "tags", "ways", "example"]

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TAGS = re.compile(r"^[ \t]*WARPLENS_TAGS\s*\(\s*(\w+)\s*,([^)]*)\)", re.MULTILINE)


class CudaBinding(NamedTuple):
    """The inputs of a compiler and a launch: address of the buffer, compiler options, the line of tags."""

    pointer: int
    options: tuple[str, ...]
    tags: str


def bind(buffer: Buffer, *, enabled: bool = True, generation: bool = False) -> CudaBinding:
    """Say how to compile a kernel that records into `buffer`, and what to pass it.

    `options` are for nvcc, NVRTC and the host's compiler alike; `pointer` is the kernel's `void *`; `tags` is a
    `WARPLENS_TAGS(Tag, …)` for sources that have none, made of the buffer's table.

    Args:
        buffer: what `warplens.intrakernel.allocate` made.
        enabled: False compiles to what the kernel is without regions.
        generation: put the launch's number into every record, so that records of an older launch are recognized one by one.
    """
    plan = plan_of(buffer, enabled=enabled, generation=generation)
    # No -std: C++17 is the default of CUDA 12 and later, and extensions of newer PyTorch need C++20.
    options = [f"-I{include_path()}", f"-DWARPLENS_HEADERS={revision()}"]
    if not enabled:
        options.append("-DWARPLENS_INTRAKERNEL_OFF")
    else:
        options.append(f"-DWARPLENS_CLOCK={int(plan.clock == 'clock')}")
        options += ["-DWARPLENS_GENERATION=1"] * generation
        options += [f"-DWARPLENS_RING_SLOTS={plan.ring_slots}"] * bool(plan.ring_slots)
    return CudaBinding(buffer.pointer, tuple(options), _tag_line(buffer.tags))


def _tag_line(table: TagTable) -> str:
    names = [re.sub(r"\W", "_", name) for name in table.names]
    names = [f"_{name}" if name[:1].isdigit() else name for name in names]
    if len(set(names)) != len(names):
        raise UsageError(f"some tags have the same name in C++: {', '.join(names)}")
    return f"WARPLENS_TAGS(Tag, {', '.join(names)})\n" if names else ""


def tags(source: str, type: str = "") -> TagTable:
    """Read the names of a kernel's regions from its source.

    Those of the one `WARPLENS_TAGS` in it, or of the one for `type`.

    UsageError if there is none, or more than one, or where a name is given a number: numbers follow the order.
    """
    matches = [match for match in _TAGS.finditer(_COMMENTS.sub(" ", source)) if type in ("", match[1])]
    if len(matches) != 1:
        raise UsageError(
            f"the source has {len(matches) or 'no'} WARPLENS_TAGS({type or 'type'}, name, …); one is needed"
        )
    names = [name.strip() for name in matches[0][2].split(",") if name.strip()]
    odd = [name for name in names if not re.fullmatch(r"\w+", name)]
    if odd:
        raise UsageError(f"WARPLENS_TAGS has names only, in the order of their numbers; not {odd[0]!r}")
    return TagTable(names)


def ways() -> dict[str, str | None]:
    """List the ways to run kernels, best first, with what each lacks here."""
    from warplens.intrakernel.device.cuda_kernels import gpu_compiler, host_compiler

    compiler = None if gpu_compiler() else "neither nvcc nor cuda-bindings is installed"
    return {
        "gpu": driver.why_no_device() or compiler,
        "host": None if host_compiler() else "no C++ compiler is installed",
    }


def example(way: str) -> Buffer:
    """Run the example kernel, and return its buffer."""
    import ctypes

    from warplens.intrakernel.buffers import allocate
    from warplens.intrakernel.device.cuda_kernels import GpuKernels, HostKernels, compile_gpu

    with open(
        os.path.join(os.path.dirname(os.path.dirname(__file__)), "examples", "tiles.cu"), encoding="utf-8"
    ) as file:
        source = file.read()
    threads = 64
    numbers = threads * dsl.EXAMPLE_GRID * dsl.EXAMPLE_TILES
    device = "cpu" if way == "host" else "cuda"
    buffer = allocate(grid=dsl.EXAMPLE_GRID, warps=threads // 32, slots=32, tags=tags(source), device=device)
    if way == "host":
        host = HostKernels(source, ["tiles"], bind(buffer).options)
        data = (ctypes.c_float * numbers)()
        with buffer.launch("example"):
            host.launch("tiles", dsl.EXAMPLE_GRID, threads, data, data, dsl.EXAMPLE_TILES, buffer)
        return buffer
    cuda = driver.driver()
    major, minor = cuda.capability(buffer.device or 0)
    gpu = GpuKernels(compile_gpu(source, f"sm_{major}{minor}", bind(buffer).options), buffer.pointer)
    with cuda.using(cuda.context_of(buffer.pointer)):
        pointer = cuda.allocate(4 * numbers)
    memory = ctypes.c_void_p(pointer)
    with buffer.launch("example"):
        gpu.launch("tiles", dsl.EXAMPLE_GRID, threads, memory, memory, dsl.EXAMPLE_TILES, buffer)
    buffer.read()  # waits until the kernel is done
    with cuda.using(cuda.context_of(buffer.pointer)):
        cuda.free(pointer)
    return buffer
