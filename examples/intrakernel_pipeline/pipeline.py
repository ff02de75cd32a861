"""A kernel whose warps wait for each other, and its fix: `python pipeline.py` has one buffer, `python pipeline.py --stages 3` three.

The kernel is pipeline.cu beside this file. Where there are a GPU and nvcc it runs there. Else the compiler of the host makes it run
on the CPU: what computing with a tile takes is real then. Memory of the CPU is too near to wait for, so loading a tile is made to
take as long as computing with one.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

from warplens import intrakernel
from warplens.errors import WarplensError
from warplens.intrakernel.device.cuda_kernels import GpuKernels, HostKernels, compile_gpu, gpu_compiler
from warplens.intrakernel.driver import driver, why_no_device
from warplens.intrakernel.dsl import cuda

SOURCE = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")
WARPS, TILE, LANES = 3, 512, 64  # of the kernel: warps of a block, numbers of a tile, lanes that compute
WORK_GPU, WORK_CPU = (
    2,
    400,
)  # so that computing with a tile takes about as long as loading it, or some milliseconds


def buffer_for(blocks: int, tiles: int, stages: int, device: str) -> intrakernel.Buffer:
    """Room for two regions of each tile, in each warp."""
    return intrakernel.allocate(
        grid=blocks, warps=WARPS, slots=2 * (tiles + stages), tags=cuda.tags(SOURCE), device=device
    )


def on_the_cpu(blocks: int, tiles: int, stages: int) -> tuple[intrakernel.Buffer, list[float]]:
    """Compile for the CPU and run there; return what was recorded, and what was computed."""
    numbers = (ctypes.c_float * (blocks * tiles * TILE))(
        *(index % 7 for index in range(blocks * tiles * TILE))
    )
    sums = (ctypes.c_float * (blocks * LANES))()
    buffer = buffer_for(blocks, tiles, stages, "cpu")
    kernels = HostKernels(SOURCE, ["pipeline"], [*cuda.bind(buffer).options, f"-DSTAGES={stages}"])

    def one_tile() -> int:
        began = time.perf_counter_ns()
        kernels.launch("pipeline", 1, 32 * WARPS, numbers, sums, 1, WORK_CPU, ctypes.c_void_p(None))
        return time.perf_counter_ns() - began

    os.environ["WARPLENS_HOST_LATENCY_NS"] = "0"
    os.environ["WARPLENS_HOST_LATENCY_NS"] = str(min(one_tile() for _ in range(25)))
    with buffer.launch("pipeline"):
        kernels.launch("pipeline", blocks, 32 * WARPS, numbers, sums, tiles, WORK_CPU, buffer)
    return buffer, list(sums)


def on_a_gpu(blocks: int, tiles: int, stages: int) -> tuple[intrakernel.Buffer, list[float]]:
    """The same on a GPU."""
    buffer = buffer_for(blocks, tiles, stages, "cuda")
    cuda_driver = driver()
    major, minor = cuda_driver.capability(buffer.device or 0)
    kernels = GpuKernels(
        compile_gpu(SOURCE, f"sm_{major}{minor}", [*cuda.bind(buffer).options, f"-DSTAGES={stages}"]),
        buffer.pointer,
    )
    numbers = (ctypes.c_float * (blocks * tiles * TILE))(
        *(index % 7 for index in range(blocks * tiles * TILE))
    )
    with cuda_driver.using(cuda_driver.context_of(buffer.pointer)):
        on_device = cuda_driver.allocate(ctypes.sizeof(numbers))
        cuda_driver.write(on_device, bytes(numbers))
        sums = cuda_driver.allocate(4 * blocks * LANES)
    with buffer.launch("pipeline"):
        kernels.launch(
            "pipeline",
            blocks,
            32 * WARPS,
            ctypes.c_void_p(on_device),
            ctypes.c_void_p(sums),
            tiles,
            WORK_GPU,
            buffer,
        )
    with cuda_driver.using(cuda_driver.context_of(buffer.pointer)):
        return buffer, list(
            (ctypes.c_float * (blocks * LANES)).from_buffer(cuda_driver.read(sums, 4 * blocks * LANES))
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stages", type=int, default=1, help="buffers of a block, 1 to 8 (1)")
    parser.add_argument("--blocks", type=int, default=2, help="blocks (2)")
    parser.add_argument("--tiles", type=int, default=60, help="tiles of a block (60)")
    parser.add_argument("--cpu", action="store_true", help="on the CPU, also where there is a GPU")
    chosen = parser.parse_args()
    if not 1 <= chosen.stages <= 8 or min(chosen.blocks, chosen.tiles) < 1:
        parser.error("1 to 8 stages, and at least one block and one tile")
    gpu = not chosen.cpu and why_no_device() is None and gpu_compiler() == "nvcc"
    try:
        buffer, sums = (on_a_gpu if gpu else on_the_cpu)(chosen.blocks, chosen.tiles, chosen.stages)
    except WarplensError as error:
        sys.exit(f"pipeline.py: {error}")
    found = buffer.decode()
    print(
        f"{chosen.tiles} tiles a block with {chosen.stages} in flight: {(found.end - found.start) / 1e6:.3f} ms, sum {sum(sums):.3f}"
    )
    for lost in found.losses():
        print(lost)


if __name__ == "__main__":
    main()
