"""Regions of Numba-CUDA kernels, compiled here: how many, in every shape of control flow, and what modes and clocks change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dsl.compiled import PROGRAMS, numba
from tests.dsl.languages import PATIENT, run
from tests.dsl.machine_code import count

pytestmark = [pytest.mark.require("numba-cuda"), PATIENT]


@pytest.mark.require("nvdisasm")
def test_control_flow_clocks_and_modes(tmp_path: Path) -> None:
    everything, leaves, cycles, claim, ring, some, plain = numba(
        tmp_path,
        "sm_90a",
        ("everything", {}),
        ("leaves", {}),
        ("leaves", {"clock": "clock"}),
        ("loop", {"mode": "claim"}),
        ("many_bare", {"mode": "smem", "slots": 64, "warps": 4}),
        ("loop", {"warps": [0, 2], "sample_blocks": 4}),
        ("loop", {}),
    )
    assert everything.machine.count(r"^@!?P\d STG\.E\.\w+\.128") >= 9
    assert not everything.machine.count(r"\b(LDL|STL|CALL)\b|\bATOM")
    assert len(re.findall(r"%globaltimer_lo;", leaves.ptx)) == 2 * 2
    assert leaves.ptx.count("st.global.cs.v4.u32") == leaves.ptx.count("@p st.global.cs.v4.u32") == 2
    assert not re.search(r"\batom|\.local\b|\bcall\b", leaves.ptx)
    assert (
        len(re.findall(r"@q red\.", leaves.ptx)) == len(re.findall(r"\bred\.", leaves.ptx)) == 1
    )  # of a unit without a slice
    assert len(re.findall(r"%clock;", cycles.ptx)) == 2 * 2
    assert "%globaltimer_lo" not in cycles.ptx
    assert len(re.findall(r"\batom\.global", claim.ptx)) == 1
    assert count(claim.loop, "ATOM") == 0
    assert ".b8 wl_rings[2048]" in ring.ptx  # four warps, 64 records of 8 bytes
    assert ring.machine.count(r"^@!?P\d STS\.64") >= 1
    assert not ring.machine.count(r"STG\.E\.\w+\.128")
    assert count(some.loop, "CLOCK|TIMER") == 2
    # The SM is read once at the begin and once at the end, not for each region.
    assert count(plain.loop, "SMID") == 0


def test_mistakes_are_told_while_the_kernel_is_compiled(tmp_path: Path) -> None:
    done = run(
        "numba-cuda",
        PROGRAMS / "numba_compile.py",
        tmp_path,
        "90",
        'numba_kernels:many:{"mode": "smem"}',
        ok=False,
    )
    assert done.returncode != 0
    assert "no room for a payload: use mode 'slices' or 'claim'" in done.stderr
