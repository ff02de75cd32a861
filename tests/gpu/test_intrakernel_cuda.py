"""Kernels in CUDA C++ record on a GPU what they record on the CPU, and their own clocks agree."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "numpy"), pytest.mark.timeout(600)]
SOURCE = (ROOT / "tests" / "dsl" / "programs" / "cuda_recording.cu").read_text(encoding="utf-8")
MARK, ASYNC, GENERATION, PAYLOAD = 1, 2, 4, 8
MANY = 1_000_000
SLACK = 64  # ns that two timers of a GPU may be apart: two ticks


@pytest.fixture(name="run")
def _run() -> Any:
    from warplens.intrakernel.device.cuda_kernels import GpuKernels, compile_gpu, gpu_compiler
    from warplens.intrakernel.driver import driver
    from warplens.intrakernel.dsl import cuda

    if gpu_compiler() is None:
        pytest.skip("neither nvcc nor cuda-bindings is installed")
    major, minor = driver().capability(0)

    def run(
        kernel: str, grid: Any, block: Any, buffer: Any, *words: Any, launches: int = 1, **options: Any
    ) -> Any:
        kernels = GpuKernels(
            compile_gpu(SOURCE, f"sm_{major}{minor}", cuda.bind(buffer, **options).options), buffer.pointer
        )
        for _ in range(launches):
            with buffer.launch(kernel):
                kernels.launch(kernel, grid, block, *words, buffer)
        return buffer.decode()

    return run


def _allocate(*words: Any, **named: Any) -> Any:
    from warplens.intrakernel import allocate
    from warplens.intrakernel.dsl import cuda

    return allocate(*words, tags=cuda.tags(SOURCE), device="cuda", library="cuda", **named)


@pytest.mark.parametrize("clock", ["globaltimer", "clock"])
def test_each_warp_tells_its_own_story(run: Any, clock: str) -> None:
    buffer = _allocate((16, 4), warps=4, clock=clock)
    found = run("regions", (16, 4), 128, buffer, 5)
    units = found.units
    # these warps are over before cycles could be compared with nanoseconds
    assert [loss for loss in found.losses() if "the clock's rate" not in loss] == []
    assert found.clock == clock
    assert units["cta"].tolist() == [cta for cta in range(64) for _ in range(4)]
    assert units["warp"].tolist() == [0, 1, 2, 3] * 64
    assert units["ended"].all()
    for unit in range(len(units)):
        events = found.events[found.events["unit"] == unit]
        assert [buffer.tags.label(tag) for tag in events["tag"].tolist()] == ["inner", "outer"] * 5
        assert events["payload"].tolist()[1::2] == list(range(5))
        assert (events["start"] <= events["end"]).all()
        if clock == "globaltimer":
            assert (events["start"] >= units["start"][unit] - SLACK).all()
            assert (events["end"] <= units["end"][unit] + SLACK).all()


def test_tokens_and_marks(run: Any) -> None:
    buffer = _allocate()
    found = run("tokens", 1, 32, buffer)
    assert found.events["flags"].tolist() == [ASYNC | PAYLOAD, MARK, MARK | PAYLOAD, ASYNC]


def test_launches_are_told_apart(run: Any) -> None:
    buffer = _allocate(8, warps=2, slots=16)
    found = run("regions", 8, 64, buffer, 3, launches=5, generation=True)
    assert found.generation == 5
    assert (len(found.events), found.garbled) == (8 * 2 * 6, 0)
    assert (found.events["flags"] & GENERATION != 0).all()


def test_warps_that_leave_early_keep_what_they_recorded(run: Any) -> None:
    found = run("leaving", 64, 64, _allocate(64, warps=2, slots=8))
    assert found.units["ended"].tolist() == [cta % 2 == 0 for cta in range(64) for _ in range(2)]
    assert found.units["events"].tolist() == [4, 3, 3, 3] * 32


def test_a_million_blocks_lose_nothing_unseen(run: Any) -> None:
    buffer = _allocate(MANY, slots=3)
    found = run("regions", MANY, 32, buffer, 2)
    assert len(found.units) == MANY
    assert (len(found.events), found.dropped, found.needed_slots) == (3 * MANY, MANY, 4)
    assert found.units["ended"].all()


def test_units_claim_slices_until_there_is_none(run: Any) -> None:
    buffer = _allocate(mode="claim", units=1000, slots=4)
    found = run("regions", 4096, 32, buffer, 2, launches=3)
    assert (len(found.units), len(found.events), found.units_lost) == (1000, 4000, 3096)
    assert len(set(found.units["cta"].tolist())) == 1000


def test_a_launch_that_is_larger_than_the_buffer_is_noticed(run: Any) -> None:
    found = run("regions", 5000, 32, _allocate(4096, slots=4), 2)
    assert (len(found.units), found.units_lost) == (4096, 904)


@pytest.mark.parametrize("count", [1, 8, 1000])
def test_a_ring_keeps_the_latest(run: Any, count: int) -> None:
    buffer = _allocate(128, warps=2, slots=8, mode="smem")
    found = run("rings", 128, 64, buffer, count)
    assert len(found.units) == 256
    for unit, warp in enumerate(found.units["warp"].tolist()):
        every = ["outer" if i % 2 == 0 else "inner" for i in range(count)] + ["moment"] * (warp == 0)
        names = [buffer.tags.label(tag) for tag in found.events["tag"][found.events["unit"] == unit].tolist()]
        assert names == every[-8:]
    assert found.units["ended"].all()


def test_kernels_compute_what_they_compute_without_it(run: Any) -> None:
    from warplens.intrakernel.driver import driver

    numbers = (ctypes.c_int * 512)(*range(512))
    with driver().using(driver().context_of_device()):
        inputs, sums = driver().allocate(2048), driver().allocate(16)
        driver().write(inputs, bytes(numbers))
    found = run("sum", 4, 128, _allocate(4, warps=4), ctypes.c_void_p(inputs), ctypes.c_void_p(sums))
    with driver().using(driver().context_of_device()):
        made = list((ctypes.c_int * 4).from_buffer(driver().read(sums, 16)))
    assert made == [sum(range(128 * block, 128 * block + 128)) for block in range(4)]
    assert found.units["cta"].tolist() == [0] * 4


def test_the_example_runs_on_the_gpu(run: Any) -> None:
    from warplens.intrakernel.dsl import cuda
    from warplens.intrakernel.example import check

    buffer = cuda.example("gpu")
    assert check(buffer, buffer.decode()) == []
