"""Instructions that one region adds to a kernel, for each language and architecture; needs no GPU.

Instructions per pass of a loop that is not unrolled, and registers of the smallest kernel that has one. The reference design
takes a slot by an atomic and stores four words for each event; under its names here (CuTe DSL) it claims a slice once per launch.
"""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from harness import Row
from tests.dsl import costs
from tests.dsl.compiled import ARCHITECTURES
from tests.support.optional_dependencies import missing

NEEDS = "nvdisasm"
NAMES = {"cute": "CuTe DSL", "cuda": "CUDA C++", "triton": "Triton", "numba": "Numba-CUDA"}
WHAT = {**costs.WHAT, costs.REFERENCE: "an event of the reference design"}
# What takes more than the budgets of 7 or 9 instructions and 8 registers, and why.
WHY = """A literal payload in CUDA C++ takes an eighth instruction. Two stamps, the bounds, the address, the cursor, the word with
the tag, the payload and the store are a result each: eight of them. The word and the payload could stay in registers, and the
assembler does so where there is room; here it makes them anew (two `MOV`) since two registers more would be worse. A ring in CUDA
C++ takes ten registers: its kernel's begin, which finds the unit and checks the buffer, needs 18 at once, more than the loop, and
larger kernels have those. A ring in Numba-CUDA before Hopper takes ten instructions and eleven registers: its linker reads the
low word of `%clock` by two instructions (`S2UR` and a wait for it) however it is asked for, and leaves helpers for
`bar.warp.sync` and `shfl` beside the kernel that nobody calls, but that name R20."""
OURS = "an event under the reference design's names"  # in CuTe DSL, whose profile_region and others are ours


def run(quick: bool) -> list[Row]:
    """Compile every case of every language whose compiler is here."""
    found = []
    for language, piece in costs.LANGUAGES.items():
        if missing(piece):
            continue
        for arch in ARCHITECTURES[1:2] if quick else ARCHITECTURES:
            with tempfile.TemporaryDirectory() as folder:
                found += _rows(language, arch, Path(folder))
    return found


def _rows(language: str, arch: str, folder: Path) -> list[Row]:
    codes = costs.codes(language, folder, arch)
    # Not told from the loop that copies the ring.
    joined = arch == "sm_80" and language == "cuda"
    rows = []
    for name, what in WHAT.items():
        if name not in codes or (name == costs.RING and joined):
            continue
        cost = costs.cost(codes, name)
        what = OURS if name == costs.REFERENCE and language == "cute" else what
        budget = None if name == costs.REFERENCE else costs.promised(language, name)
        note = f"{cost.registers} registers, {arch}"
        rows.append(
            Row(
                f"{NAMES[language]}: {what}",
                cost.instructions,
                "instructions",
                budget=budget,
                budget_on="value",
                note=note,
            )
        )
    return rows


def page(rows: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """One line per language and case, one column per architecture: instructions / registers."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        registers, arch = re.fullmatch(r"(-?\d+) registers, (\w+)", row["note"]).groups()  # type: ignore[union-attr]
        missed = " ✗ **missed**" if row["ok"] is False else ""
        cells.setdefault(row["what"], {})[arch] = f"{row['value']:.0f} / {registers}{missed}"
    lines = [
        "| instructions / registers | " + " | ".join(ARCHITECTURES) + " |",
        "|---|" + "--:|" * len(ARCHITECTURES),
    ]
    lines += [
        "| " + " | ".join((what, *(found.get(arch, "") for arch in ARCHITECTURES))) + " |"
        for what, found in cells.items()
    ]
    why = textwrap.fill(" ".join(WHY.split()), 100, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", why]), []
