"""Regions of Triton kernels, compiled here: how many, in every shape of control flow, and what modes and clocks change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dsl.compiled import triton
from tests.dsl.languages import PATIENT, answer
from tests.dsl.machine_code import count
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.require("triton"), PATIENT]


@pytest.mark.parametrize(
    "arch",
    [
        pytest.param("sm_80", marks=pytest.mark.exhaustive),
        pytest.param("sm_100a", marks=pytest.mark.exhaustive),
    ],
)
def test_each_region_is_two_timers_and_one_predicated_store_elsewhere(tmp_path: Path, arch: str) -> None:
    check_everything(triton(tmp_path, arch, ("everything", {}))[0].ptx)


def check_everything(ptx: str) -> None:
    # load, even, while, outer, inner; first and second by token; two marks
    assert ptx.count("%globaltimer_lo") == 2 * 7 + 2
    assert ptx.count("st.global.cs.v4.u32") == ptx.count("@p st.global.cs.v4.u32") == 7 + 2
    assert not re.search(r"\batom|\.local\b|\bcall\b", ptx)
    assert (
        len(re.findall(r"@q red\.", ptx)) == len(re.findall(r"\bred\.", ptx)) == 1
    )  # at the begin, of a unit without a slice


@pytest.mark.require("nvdisasm")
def test_control_flow_clocks_and_modes(tmp_path: Path) -> None:
    everything, cycles, claim, ring, some, plain, larger = triton(
        tmp_path,
        "sm_90a",
        ("everything", {}),
        ("loop", {"clock": "clock"}),
        ("loop", {"mode": "claim"}),
        ("loop", {"mode": "smem", "slots": 64, "warps": 4}),
        ("loop", {"warps": [0, 2], "sample_blocks": 4}),
        ("loop", {}),
        ("loop", {"slots": 4096, "grid": 64}),
    )
    check_everything(everything.ptx)
    assert len(re.findall(r"%clock;", cycles.ptx)) == 2
    assert "%globaltimer_lo" not in cycles.ptx
    assert len(re.findall(r"\batom\.global", claim.ptx)) == 1
    assert count(claim.loop, "ATOM") == 0
    assert ".b8 wl_rings[2048]" in ring.ptx  # four warps, 64 records of 8 bytes
    assert count(ring.loop, r"^@!?P\d STS\.64") == 1
    assert count(ring.loop, "STG") == 0
    assert count(some.loop, "CLOCK|TIMER") == 2
    assert "rem.u32" in some.ptx
    assert larger.cubin.read_bytes() == plain.cubin.read_bytes(), "a larger buffer needs no new kernel"
    # The SM is read once at the begin and once at the end, not for each region.
    assert count(plain.loop, "SMID") == 0


def test_launches_compile_once_for_each_way_to_record() -> None:
    # The launcher of Triton itself, with a driver that only says what GPU there would be.
    program = ROOT / "tests" / "dsl" / "programs" / "triton_launch.py"
    assert answer("triton", program, TRITON_ALWAYS_COMPILE="1") == [
        [1, 2],  # kernels so far, and timers in the one that was chosen
        [1, 2],  # a larger buffer: the same
        [2, 2],  # other tags
        [3, 0],  # off
        [3, 0],  # off, whatever the buffer
        [4, 2],  # with the launch's number
    ]
