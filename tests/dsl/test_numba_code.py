"""What a region costs in Numba-CUDA, in machine code that is compiled here: no atomics, no local memory, few instructions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.dsl.languages import PATIENT, run
from tests.dsl.machine_code import MachineCode, count, read
from tests.pieces import ROOT

pytestmark = [pytest.mark.require("numba-cuda", "nvdisasm"), PATIENT]
PROGRAM = ROOT / "tests" / "dsl" / "numba_compile.py"
CAPABILITIES = (80, 90, 100)
MOST, MOST_REGISTERS = 9, 8


class Code(NamedTuple):
    ptx: str
    machine: MachineCode
    cubin: bytes

    @property
    def loop(self) -> tuple[str, ...]:
        """The loop that loads data."""
        (found,) = [loop for loop in self.machine.loops if count(loop, r"\bLDG")]
        assert count(found, r"\bLDG") == 1, "the loop was unrolled"
        return found


def compiled(folder: Path, *cases: tuple[str, int, dict[str, Any]]) -> list[Code]:
    """Compile (kernel, capability, options) each."""
    run("numba-cuda", PROGRAM, folder, *(f"{kernel}:{capability}:{json.dumps(options)}" for kernel, capability, options in cases))
    return [
        Code((folder / f"{number}.ptx").read_text(), read(folder / f"{number}.cubin"), (folder / f"{number}.cubin").read_bytes())
        for number in range(len(cases))
    ]


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_region_costs_few_instructions_and_registers(tmp_path: Path, capability: int) -> None:
    bare, plain, generation, payload, both = compiled(
        tmp_path,
        ("loop_bare", capability, {}),
        ("loop", capability, {}),
        ("loop", capability, {"generation": True}),
        ("loop_payload", capability, {}),
        ("loop_payload", capability, {"generation": True}),
    )
    for code in (plain, generation, payload, both):
        assert count(code.loop, "CLOCK|TIMER") == 2
        assert count(code.loop, r"^@!?P\d STG\.E\.\w+\.128") == 1
        assert len(code.loop) - len(bare.loop) <= MOST, "\n".join(code.loop)
        assert code.machine.registers - bare.machine.registers <= MOST_REGISTERS
        assert not code.machine.count(r"\b(LDL|STL|CALL)\b|\bATOM")
        assert count(code.loop, r"\bRED\b") == 0
        # The SM is read once at the begin and once at the end, not for each region.
        assert count(code.loop, "SMID") == 0


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_each_region_is_two_timers_and_one_predicated_store(tmp_path: Path, capability: int) -> None:
    (code,) = compiled(tmp_path, ("leaves", capability, {}))
    assert len(re.findall(r"%globaltimer_lo;", code.ptx)) == 2 * 2
    assert code.ptx.count("st.global.cs.v4.u32") == code.ptx.count("@p st.global.cs.v4.u32") == 2
    assert not re.search(r"\batom|\.local\b|\bcall\b", code.ptx)
    assert len(re.findall(r"@q red\.", code.ptx)) == len(re.findall(r"\bred\.", code.ptx)) == 1  # at the begin, of a unit without a slice


def test_every_kind_of_region_compiles(tmp_path: Path) -> None:
    (code,) = compiled(tmp_path, ("everything", 90, {}))
    assert code.machine.count(r"^@!?P\d STG\.E\.\w+\.128") >= 9
    assert not code.machine.count(r"\b(LDL|STL|CALL)\b|\bATOM")


def test_switched_off_it_is_the_code_of_a_kernel_without_regions(tmp_path: Path) -> None:
    cases = [(name, capability, {"enabled": False}) for capability in CAPABILITIES for name in ("loop_bare", "loop")]
    codes = compiled(tmp_path, *cases)
    for bare, off in zip(codes[::2], codes[1::2], strict=True):
        assert bare.ptx == off.ptx
        assert bare.cubin == off.cubin


def test_clock_and_modes_change_only_what_they_say(tmp_path: Path) -> None:
    cycles, claim, ring, some = compiled(
        tmp_path,
        ("leaves", 80, {"clock": "clock"}),
        ("loop", 90, {"mode": "claim"}),
        ("many_bare", 90, {"mode": "smem", "slots": 64, "warps": 4}),
        ("loop", 90, {"warps": [0, 2], "sample_blocks": 4}),
    )
    assert len(re.findall(r"%clock;", cycles.ptx)) == 2 * 2
    assert "%globaltimer_lo" not in cycles.ptx
    assert len(re.findall(r"\batom\.global", claim.ptx)) == 1
    assert count(claim.loop, "ATOM") == 0
    assert ".b8 wl_rings[2048]" in ring.ptx  # four warps, 64 records of 8 bytes
    assert ring.machine.count(r"^@!?P\d STS\.64") >= 1
    assert not ring.machine.count(r"STG\.E\.\w+\.128")
    assert count(some.loop, "CLOCK|TIMER") == 2


def test_mistakes_are_told_while_the_kernel_is_compiled(tmp_path: Path) -> None:
    done = run("numba-cuda", PROGRAM, tmp_path, 'many:90:{"mode": "smem"}', ok=False)
    assert done.returncode != 0
    assert "no room for a payload: use mode 'slices' or 'claim'" in done.stderr
