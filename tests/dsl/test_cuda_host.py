"""The header for CUDA C++ compiled by the host's compiler: the same recorder, run for real, and what the reader makes of it."""

from __future__ import annotations

import ctypes
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.dsl.decoded import told
from tests.support.optional_dependencies import ROOT
from warplens import intrakernel
from warplens.errors import CaptureError, UsageError
from warplens.intrakernel import headers
from warplens.intrakernel.buffers import Buffer
from warplens.intrakernel.device.cuda_kernels import HostKernels
from warplens.intrakernel.dsl import cuda

pytestmark = pytest.mark.require("g++", "numpy")
SOURCE = (ROOT / "tests" / "dsl" / "programs" / "cuda_recording.cu").read_text(encoding="utf-8")
NAMES = ["regions", "tokens", "leaving", "rings", "sum"]
MARK, ASYNC, GENERATION, PAYLOAD = 1, 2, 4, 8


@cache
def kernels(*options: str) -> HostKernels:
    return HostKernels(SOURCE, NAMES, options)


def buffer(grid: Any = 1, warps: Any = 1, **wishes: Any) -> Buffer:
    return intrakernel.allocate(grid, warps, tags=cuda.tags(SOURCE), device="cpu", **wishes)


def launched(
    into: Buffer, name: str, grid: Any, block: Any, *arguments: Any, options: tuple[str, ...] = ()
) -> dict[str, Any]:
    with into.launch(name):
        kernels(*options).launch(name, grid, block, *arguments, into)
    return told(into)


def test_regions_nest_and_carry_payloads() -> None:
    found = launched(buffer((3, 2), warps=2), "regions", (3, 2), 64, 5)
    assert [unit[:4] for unit in found["units"]] == [
        [cta, warp, True, 10] for cta in range(6) for warp in range(2)
    ]
    assert found["dropped"] == found["lost"] == found["garbled"] == 0
    for unit, (begin, end) in enumerate(found["spans"]):
        events = [event for event, of in zip(found["events"], found["unit_of"], strict=True) if of == unit]
        assert [event[1:4] for event in events] == [
            row for i in range(5) for row in (["inner", 0, None], ["outer", PAYLOAD, i])
        ]
        for inner, outer in zip(events[::2], events[1::2], strict=True):
            assert begin <= outer[4] <= inner[4] <= inner[5] <= outer[5] <= end


def test_threads_of_three_dimensions_make_warps_in_their_order() -> None:
    found = launched(buffer((1, 2, 3), warps=3), "regions", (1, 2, 3), (8, 3, 4), 1)
    assert [unit[:2] for unit in found["units"]] == [[cta, warp] for cta in range(6) for warp in range(3)]


def test_records_without_a_slot_are_counted() -> None:
    into = buffer(4, slots=7)
    found = launched(into, "regions", 4, 32, 6)
    assert [unit[3:] for unit in found["units"]] == [[7, 5]] * 4
    assert (found["dropped"], found["needed"], into.needed_slots) == (20, 12, 12)
    for _ in range(2):
        more = into.run(lambda bigger: kernels().launch("regions", 4, 32, 6, bigger))
        assert (more.dropped, len(more.events)) == (0, 48)


def test_launches_follow_each_other_in_one_buffer() -> None:
    into = buffer(2, slots=8)
    assert len(launched(into, "regions", 2, 32, 4)["events"]) == 16
    for generation in (2, 3, 4):
        found = launched(into, "regions", 2, 32, 1, options=("-DWARPLENS_GENERATION=1",))
        assert found["generation"] == generation
        assert [event[1:3] for event in found["events"]] == [
            ["inner", GENERATION],
            ["outer", GENERATION | PAYLOAD],
        ] * 2
    found = launched(into, "regions", 1, 32, 1)  # one block only: the other unit is of the launch before
    assert [unit[0] for unit in found["units"]] == [0]


def test_tokens_cross_and_marks_are_moments() -> None:
    found = launched(buffer(), "tokens", 1, 32)
    rows = [event[1:4] for event in found["events"]]
    assert rows == [
        ["crossing", ASYNC | PAYLOAD, 0],
        ["moment", MARK, None],
        ["moment", MARK | PAYLOAD, 0xFFFFFFFF],
        ["crossing", ASYNC, None],
    ]
    (first, _, _, second) = [event[4:] for event in found["events"]]
    assert first[0] <= second[0] <= first[1] <= second[1]
    assert all(event[4] == event[5] for event in found["events"][1:3])


def test_warps_that_leave_early_keep_what_they_recorded() -> None:
    found = launched(buffer(4, warps=2, slots=8), "leaving", 4, 64)
    assert [unit[:3] for unit in found["units"]] == [
        [cta, warp, cta % 2 == 0] for cta in range(4) for warp in range(2)
    ]
    assert [unit[3] for unit in found["units"]] == [4, 3, 3, 3] * 2
    assert found["garbled"] == 0


def test_only_the_warps_and_blocks_that_are_asked_for_record() -> None:
    found = launched(buffer(10, warps=(0, 3), sample_blocks=4), "regions", 10, 128, 1)
    assert [unit[:2] for unit in found["units"]] == [[cta, warp] for cta in (0, 4, 8) for warp in (0, 3)]
    first = launched(buffer(2, warps=1), "regions", 2, 128, 1)
    assert [unit[:2] for unit in first["units"]] == [[0, 0], [1, 0]]
    assert found["lost"] == first["lost"] == 0


def test_units_that_find_no_slice_are_counted() -> None:
    found = launched(buffer(3, warps=2), "regions", 5, 64, 1)
    assert (len(found["units"]), found["lost"]) == (6, 4)


def test_the_loss_is_of_this_launch_only() -> None:
    into = buffer(3)
    assert launched(into, "regions", 5, 32, 1)["lost"] == 2
    assert launched(into, "regions", 3, 32, 1)["lost"] == 0


def test_units_claim_slices_until_there_is_none() -> None:
    into = buffer(mode="claim", units=5)
    found = launched(into, "regions", 4, 64, 2)
    assert [unit[:2] for unit in found["units"]] == [[0, 0], [1, 0], [2, 0], [3, 0]]
    into = buffer(warps=2, mode="claim", units=5)
    for _ in range(2):
        found = launched(into, "regions", 4, 64, 2)
        assert (len(found["units"]), len(found["events"]), found["lost"]) == (5, 20, 3)


@pytest.mark.parametrize("count", [1, 8, 30])
def test_a_ring_keeps_the_latest(count: int) -> None:
    into = buffer(2, warps=2, slots=8, mode="smem")
    found = launched(into, "rings", 2, 64, count, options=("-DWARPLENS_RING_SLOTS=8",))
    for cta in (0, 1):
        for warp in (0, 1):
            unit = found["units"].index(next(row for row in found["units"] if row[:2] == [cta, warp]))
            events = [
                event for event, of in zip(found["events"], found["unit_of"], strict=True) if of == unit
            ]
            every = ["outer" if i % 2 == 0 else "inner" for i in range(count)] + ["moment"] * (warp == 0)
            assert [event[1] for event in events] == every[-8:]
            assert found["units"][unit][2:] == [True, min(8, len(every)), max(0, len(every) - 8)]
            begin, end = found["spans"][unit]
            assert all(begin <= event[4] <= event[5] <= end for event in events)


def test_a_buffer_of_another_mode_or_ring_is_left_alone() -> None:
    for into, name, words in (
        (buffer(mode="smem", slots=8), "regions", (1,)),
        (buffer(warps=2, mode="slices"), "rings", (1,)),
        (buffer(warps=2, mode="smem", slots=16), "rings", (1,)),
    ):
        with into.launch():
            kernels("-DWARPLENS_RING_SLOTS=8").launch(name, 1, 64, *words, into)
        found = into.decode()
        assert len(found.units) == len(found.events) == 0
        assert any("compiled for another mode" in note for note in found.losses())


def test_cycles_become_nanoseconds() -> None:
    into = buffer(2, clock="clock")
    found = launched(into, "regions", 2, 32, 3, options=("-DWARPLENS_CLOCK=1",))
    assert [event[1] for event in found["events"]] == ["inner", "outer"] * 6
    assert all(begin <= end for begin, end in found["spans"])


def test_the_head_says_the_clock_that_was_recorded_with() -> None:
    into = buffer(clock="clock")
    launched(into, "regions", 1, 32, 1)
    assert into.decode().clock == "globaltimer"


def test_a_null_buffer_or_the_switch_records_nothing() -> None:
    kernels().launch("regions", 2, 64, 3, ctypes.c_void_p(None))
    into = buffer(2)
    before = into.read()
    with into.launch():
        kernels("-DWARPLENS_INTRAKERNEL_OFF").launch("regions", 2, 32, 3, into)
    assert into.read() == before
    foreign = (ctypes.c_char * 4096)()
    kernels().launch("regions", 2, 64, 3, foreign)
    assert bytes(foreign) == bytes(4096)


def test_kernels_compute_what_they_compute_without_it() -> None:
    numbers = (ctypes.c_int * 512)(*range(512))
    sums = (ctypes.c_int * 4)()
    into = buffer(4, warps=4)
    found = launched(into, "sum", 4, 128, numbers, sums)
    assert list(sums) == [sum(range(128 * block, 128 * block + 128)) for block in range(4)]
    assert [unit[:2] for unit in found["units"]] == [[0, warp] for warp in range(4)], (
        "only block 0 takes part"
    )


def test_names_are_read_from_the_source() -> None:
    assert cuda.tags(SOURCE).names == ["outer", "inner", "crossing", "moment"]
    two = "WARPLENS_TAGS(A, one)\n// WARPLENS_TAGS(C, no)\n  WARPLENS_TAGS(B,\n   two, /* more */ three)\n"
    assert cuda.tags(two, "B").names == ["two", "three"]
    for source, why in (
        ("", "no WARPLENS_TAGS"),
        (two, "2 WARPLENS_TAGS"),
        ("WARPLENS_TAGS(A, one = 3)", "one = 3"),
    ):
        with pytest.raises(UsageError, match=why):
            cuda.tags(source)


def test_a_table_becomes_names_in_the_source() -> None:
    into = intrakernel.allocate(tags=["producer/load", "2nd", "mma"], device="cpu")
    line = cuda.bind(into).tags
    assert line == "WARPLENS_TAGS(Tag, producer_load, _2nd, mma)\n"
    source = f'#include "warplens.cuh"\n{line}'
    kernel = 'extern "C" __global__ void k(void *p) { warplens::Profiler prof(p); prof.mark(Tag::mma); }'
    with into.launch():
        HostKernels(source + kernel, ["k"], cuda.bind(into).options).launch("k", 1, 32, into)
    assert [event[1] for event in told(into)["events"]] == ["mma"]
    with pytest.raises(UsageError, match="the same"):
        cuda.bind(intrakernel.allocate(tags=["a/b", "a_b"], device="cpu"))


def test_options_follow_the_buffer() -> None:
    ring = intrakernel.allocate(mode="smem", slots=32, clock="clock", device="cpu")
    assert {"-DWARPLENS_RING_SLOTS=32", "-DWARPLENS_CLOCK=1"} <= set(cuda.bind(ring).options)
    assert not any(
        word.startswith("-std") for word in cuda.bind(ring).options
    )  # extensions of PyTorch say theirs
    assert "-DWARPLENS_GENERATION=1" in cuda.bind(buffer(), generation=True).options
    assert "-DWARPLENS_INTRAKERNEL_OFF" in cuda.bind(buffer(), enabled=False).options


def test_other_headers_are_other_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy keeps compiled kernels by source and options: without it, a kernel of an older recorder would outlive an upgrade."""
    for header in Path(headers.include_path()).iterdir():
        shutil.copy(header, tmp_path)
    monkeypatch.setattr(headers, "include_path", lambda: str(tmp_path))
    before = cuda.bind(buffer()).options
    assert cuda.bind(buffer()).options == before
    with (tmp_path / "warplens_ptx.h").open("a") as file:
        file.write("// a newer one\n")
    assert set(before) ^ set(cuda.bind(buffer()).options) == {
        f"-DWARPLENS_HEADERS={headers.revision()}",
        next(word for word in before if "HEADERS" in word),
    }


def test_a_kernel_that_does_not_compile_says_why() -> None:
    with pytest.raises(CaptureError, match="nonsense"):
        HostKernels("nonsense", [])
