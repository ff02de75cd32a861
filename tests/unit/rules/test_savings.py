"""Programs with a planted mistake and their fixed twins, on a simulated machine: what is won lies between what was stated.

At least half of the estimate, at most 1.1 of the bound; and nothing is found in the twin.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.reports.simulated_gpu import PAGEABLE, PINNED, PROCESSORS, Machine
from tests.support.thorough import examples, few
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.gpus import GpuOperations
from warplens.rules.host_calls import HostCalls, cost
from warplens.rules.judging import judge

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(
    ("rule", "program", "speed"),
    few(PLANTED, step=5),
    ids=[f"{r}-{p.__name__}-{h}-{k}" for r, p, (h, k) in PLANTED],
)
def test_the_saving_lies_between_what_was_stated(
    tmp_path: Path, rule: str, program: Program, speed: tuple[int, int]
) -> None:
    mistake, twin = played(program, True, speed), played(program, False, speed)
    saved = mistake.end - twin.end
    with open_report(mistake.write(tmp_path / "mistake.warplens")) as report:
        (finding,) = judge(report, Selection(), [rule]).findings
    assert finding.bound is not None
    assert finding.estimate is not None
    assert finding.estimate / 2 <= saved <= 1.1 * finding.bound
    with open_report(twin.write(tmp_path / "twin.warplens")) as report:
        judgement = judge(report, Selection(), [rule])
    assert judgement.findings == ()
    assert not judgement.not_judged


@given(st.lists(st.tuples(*[st.integers(0, 500)] * 3, st.booleans()), min_size=1, max_size=12))
@settings(max_examples=examples(150), deadline=None)
def test_without_its_waits_any_program_wins_what_was_stated(steps: list[tuple[int, int, int, bool]]) -> None:
    def run(planted: bool) -> Machine:
        machine = Machine()
        machine.launch(1000)
        for before, kernel, behind, waits in steps:
            machine.work(before * US)
            machine.launch(kernel * US)
            machine.work(behind * US)
            if waits and planted:
                machine.wait()
        machine.launch(1000)
        machine.wait()
        return machine

    mistake = run(True)
    spent = cost(_waits(mistake), (_gpu(mistake),), computing=True)
    saved = mistake.end - run(False).end
    # the host comes 2 us later from each wait than the GPU was done, and needs a call for it
    slack = 5_000 * len(steps)
    assert saved <= spent.bound + slack
    assert spent.estimate / 2 <= saved + slack
    assert 0 <= spent.estimate <= spent.bound


def _gpu(machine: Machine) -> GpuOperations:
    rows = sorted(machine.schedule.rows["kernels"], key=lambda row: row["start"])
    start, end = (np.array([row[name] for row in rows], np.int64) for name in ("start", "end"))
    number = np.arange(len(rows))
    return GpuOperations(
        0, 0, "GPU 0", np.zeros(len(rows), np.int8), np.full(len(rows), 7), start, end, number, number
    )


def _waits(machine: Machine) -> HostCalls:
    rows = [row for row in machine.schedule.rows["cuda_api"] if row["name"] == "cudaDeviceSynchronize"]
    start, end = (np.array([row[name] for row in rows], np.int64) for name in ("start", "end"))
    same = np.zeros(len(rows), np.int64)
    names = np.array([row["name"] for row in rows], object)
    return HostCalls(np.arange(len(rows)), same, same, start, end, same - 1, same - 1, names, names)
