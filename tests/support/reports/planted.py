"""Programs with a planted mistake, and without it, on a simulated machine; the rule that names each, and its speeds."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.reports.simulated_gpu import PAGEABLE, PINNED, PROCESSORS, Machine

US, MS = 1_000, 1_000_000
STEPS = 24


def waits(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        machine.work(host)
        for _ in range(4):
            machine.launch(kernel)
        if planted:
            machine.wait()
    machine.wait()


def blocking_copies(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        machine.work(host)
        machine.copy(MS, 10 << 20, PINNED, waits=planted, name="cudaMemcpy" if planted else "cudaMemcpyAsync")
        machine.launch(kernel)
    machine.wait()


def copies_that_block(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        machine.work(host)
        machine.copy(MS, 10 << 20, PAGEABLE if planted else PINNED, waits=planted)
        machine.launch(kernel)
    machine.wait()


def copies_in_line(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        machine.work(host)
        copied = machine.copy(2 * MS, 20 << 20, PINNED, waits=False, stream=7 if planted else 8)
        machine.launch(kernel, after=copied)
    machine.wait()


def pageable_copies(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for step in range(STEPS):
        machine.work(host)
        fast = step == 0 or not planted  # the first shows what page-locked memory can do
        machine.copy((1 if fast else 4) * MS, 20 << 20, PINNED if fast else PAGEABLE, waits=False)
        machine.launch(kernel)
    machine.wait()


def allocations(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for step in range(STEPS):
        machine.work(host)
        if planted or step < STEPS // 6:  # programs may allocate while they warm up
            machine.call("cudaMalloc", 100 * US)
        machine.launch(kernel)
        if planted or step < STEPS // 6:
            machine.wait("cudaFree", 50 * US)
    machine.wait()


def graphs(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for step in range(STEPS):
        machine.work(host)
        if planted or step == 0:
            machine.call("cudaGraphInstantiate", 4 * MS)
        machine.graph(10, kernel // 10)
    machine.wait()


def short_kernels(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        if planted:
            for _ in range(40):
                machine.work(host // 40)
                machine.launch(kernel // 40)
        else:
            machine.graph(40, kernel // 40)
    machine.wait()


def one_block(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        machine.work(host)
        machine.launch(kernel)
        if planted:
            machine.launch(10 * kernel, grid_x=1)
        else:
            machine.launch(10 * kernel // PROCESSORS)
        machine.wait()


def managed_memory(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    machine.call("cudaMallocManaged", 100 * US)
    for step in range(STEPS):
        machine.work(
            host + (5 * kernel if planted or step == 0 else 0)
        )  # the pages that it touches come back
        machine.launch(6 * kernel if planted or step == 0 else kernel)
        for _ in range(4):
            machine.launch(kernel)
        machine.wait()


def communicates(machine: Machine, planted: bool, host: int, kernel: int) -> None:
    for _ in range(STEPS):
        machine.work(host)
        backward = machine.launch(kernel)
        reduced = machine.launch(
            kernel // 2, stream=8, after=backward if planted else 0, name="ncclDevKernel_AllReduce_Sum_f32"
        )
        machine.launch(kernel, after=reduced)
    machine.wait()


Program = Callable[[Machine, bool, int, int], None]
GPU_BOUND, HOST_BOUND, EVEN = (500 * US, 4 * MS), (4 * MS, 500 * US), (2 * MS, 2 * MS)
PLANTED: list[tuple[str, Program, tuple[int, int]]] = [
    *[
        (rule, waits, speed)
        for rule in ("cuda_api_sync", "unneeded_sync")
        for speed in (GPU_BOUND, HOST_BOUND, EVEN)
    ],
    *[("cuda_memcpy_sync", blocking_copies, speed) for speed in (HOST_BOUND, (2 * MS, MS))],
    *[("cuda_memcpy_async", copies_that_block, speed) for speed in (HOST_BOUND, (2 * MS, MS))],
    ("transfers_not_overlapped", copies_in_line, GPU_BOUND),
    ("transfers_not_overlapped", copies_in_line, (100 * US, 3 * MS)),
    ("pageable_memory", pageable_copies, (100 * US, MS)),
    ("pageable_memory", pageable_copies, GPU_BOUND),
    *[("allocator_churn", allocations, speed) for speed in (GPU_BOUND, HOST_BOUND, EVEN)],
    *[("graph_reinstantiation", graphs, speed) for speed in (GPU_BOUND, EVEN)],
    ("small_kernels", short_kernels, (400 * US, 100 * US)),
    ("small_kernels", short_kernels, (2 * MS, 200 * US)),
    *[("exposed_communication", communicates, speed) for speed in (GPU_BOUND, EVEN)],
    *[("unified_memory_migration", managed_memory, speed) for speed in (GPU_BOUND, HOST_BOUND, EVEN)],
    *[("tiny_grids", one_block, speed) for speed in (GPU_BOUND, EVEN)],
]


def played(program: Program, planted: bool, speed: tuple[int, int]) -> Machine:
    machine = Machine()
    program(machine, planted, *speed)
    return machine
