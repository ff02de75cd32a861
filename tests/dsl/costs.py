"""What one region costs in machine code, in each language: the same cases for tests, which hold them to budgets, and benchmarks.

A cost is the difference to the same kernel without any recording: instructions per pass of a loop that is not unrolled, and
registers of the kernel, which is as small as such a kernel can be.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.dsl import compiled
from tests.dsl.compiled import NEWEST, Case, Code
from tests.dsl.machine_code import count

LANGUAGES = {
    "cute": "cutlass-dsl",
    "cuda": "nvcc",
    "triton": "triton",
    "numba": "numba-cuda",
}  # and the piece each needs

BARE, OFF, REFERENCE = "bare", "off", "reference"
REGION, LITERAL, PAYLOAD, GENERATION, BOTH, RING = (
    "region",
    "literal",
    "payload",
    "generation",
    "both",
    "ring",
)
WHAT = {
    REGION: "a region",
    LITERAL: "… with a payload that is a literal",
    PAYLOAD: "… with a payload that is computed",
    GENERATION: "… with the launch's generation",
    BOTH: "… with a computed payload and the generation",
    RING: "… into a ring in shared memory",
    OFF: "… switched off",
}

_ON: dict[str, Case] = {
    BARE: ("bare:loop", {}),
    REGION: ("loop", {}),
    LITERAL: ("loop_literal", {}),
    PAYLOAD: ("loop_payload", {}),
    GENERATION: ("loop", {"generation": True}),
    BOTH: ("loop_payload", {"generation": True}),
    RING: ("loop", {"mode": "smem"}),
    OFF: ("loop", {"enabled": False}),
}
_DEFINES: dict[str, tuple[str, ...]] = {
    BARE: ("RECORD=0",),
    REGION: ("RECORD=1",),
    LITERAL: ("RECORD=1", "PAYLOAD=1"),
    PAYLOAD: ("RECORD=1", "PAYLOAD=2"),
    GENERATION: ("RECORD=1", "WARPLENS_GENERATION=1"),
    BOTH: ("RECORD=1", "PAYLOAD=2", "WARPLENS_GENERATION=1"),
    RING: ("RECORD=1", "RING=1"),
    OFF: ("RECORD=1", "WARPLENS_INTRAKERNEL_OFF"),
    REFERENCE: ("RECORD=2",),
}


def promised(language: str, name: str) -> int:
    """Instructions that a region may add."""
    return 0 if name == OFF else 7 if language in ("cute", "cuda") and name in (REGION, LITERAL) else 9


# What holds: less than promised mostly, and more in two cases.
INSTRUCTIONS = {
    "cute": {REGION: 7, LITERAL: 7, PAYLOAD: 8, GENERATION: 8, BOTH: 9, RING: 9},
    # Two stamps, bounds, address, cursor, tag, literal, store: each is an instruction. To keep tag and literal in registers takes two more.
    "cuda": {REGION: 7, LITERAL: 8, PAYLOAD: 8, GENERATION: 7, BOTH: 8, RING: 9},
    "triton": {REGION: 8, LITERAL: 9, PAYLOAD: 9, GENERATION: 8, BOTH: 9, RING: 9},
    "numba": {REGION: 8, LITERAL: 9, PAYLOAD: 9, GENERATION: 8, BOTH: 9, RING: 10},
}
# The promise is 8. A ring in CUDA C++ takes more at the begin of the smallest kernels: larger ones have that room. Numba's linker
# reads %clock before Hopper by two instructions (S2UR and a wait), and keeps helpers that name R20 beside the kernel.
REGISTERS = {("cuda", RING): 10, ("numba", RING): 11}


class Cost(NamedTuple):
    """What one region adds."""

    instructions: int
    registers: int


def codes(language: str, folder: Path, arch: str, *names: str, release: str = NEWEST) -> dict[str, Code]:
    """Compile these cases (default: all that the language has) and the bare kernel."""
    wanted = list(dict.fromkeys((BARE, *(names or available(language)))))
    if language == "cuda":
        return dict(
            zip(wanted, compiled.cuda(folder, arch, *(_DEFINES[name] for name in wanted)), strict=True)
        )
    # The natural clock of the architecture, as a buffer on a device has it.
    clock = {"clock": "clock" if arch == "sm_80" else "globaltimer"}
    cases = [
        ("nuggets:loop", clock) if name == REFERENCE else (_ON[name][0], {**clock, **_ON[name][1]})
        for name in wanted
    ]
    if language == "cute":
        return dict(zip(wanted, compiled.cute(folder, arch, *cases, release=release), strict=True))
    make = compiled.triton if language == "triton" else compiled.numba
    return dict(zip(wanted, make(folder, arch, *cases), strict=True))


def available(language: str) -> list[str]:
    """The cases that a language has: of the reference design's way only where it has one."""
    return [*_ON, REFERENCE] if language in ("cute", "cuda") else list(_ON)


def cost(found: dict[str, Code], name: str) -> Cost:
    """What `name` costs, of what `codes` compiled."""
    bare, code = found[BARE], found[name]
    return Cost(len(code.loop) - len(bare.loop), code.machine.registers - bare.machine.registers)


def most_registers(language: str, name: str) -> int:
    """The budget for registers."""
    return REGISTERS.get((language, name), 8)


def stores(code: Code) -> int:
    """Stores to global memory in the loop."""
    return count(code.loop, r"\bSTG")
