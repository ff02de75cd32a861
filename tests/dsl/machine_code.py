"""Reads PTX and machine code (SASS) that tests compiled: instructions, loops, registers. Needs nvdisasm for the latter."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from tests.support.optional_dependencies import LANGUAGES, find_library


@dataclass(frozen=True)
class MachineCode:
    """A kernel's machine code: instructions in their order without padding, and the index that each label stands before."""

    instructions: tuple[str, ...]
    labels: dict[str, int]
    registers: int

    @cached_property
    def loops(self) -> tuple[tuple[str, ...], ...]:
        """The instructions of each loop: from a label to the branch back to it."""
        found = []
        for at, text in enumerate(self.instructions):
            jump = re.search(r"\bBRA.*\(?`?\((\.L_x_\d+)\)", text)
            if jump and self.labels.get(jump[1], at) < at:
                found.append(self.instructions[self.labels[jump[1]] : at + 1])
        return tuple(found)

    def count(self, pattern: str) -> int:
        """How many instructions match `pattern`, a regular expression."""
        return count(self.instructions, pattern)


def count(instructions: tuple[str, ...], pattern: str) -> int:
    """How many of `instructions` match `pattern`, a regular expression."""
    return sum(re.search(pattern, text) is not None for text in instructions)


@cache
def read(cubin: Path) -> MachineCode:
    """Disassemble a file of machine code that holds one kernel, and is not written again. The test requires `nvdisasm`."""
    found = find_library(LANGUAGES["nvdisasm"])
    assert found is not None, "no environment has nvdisasm"
    plain = subprocess.run([found[1], "-c", cubin], capture_output=True, text=True, check=True).stdout
    labels: dict[str, int] = {}
    instructions: list[str] = []
    for line in plain.splitlines():
        if label := re.match(r"^(\.L_x_\d+):", line):
            labels[label[1]] = len(instructions)
        elif (found_here := re.match(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)) and not found_here[
            1
        ].startswith("NOP"):
            instructions.append(found_here[1])
    return MachineCode(tuple(instructions), labels, _registers(plain))


def _registers(text: str) -> int:
    """The highest general register that the code names, plus one: what the kernel needs of them."""
    return max((int(number) for number in re.findall(r"\bR(\d+)\b", text)), default=-1) + 1
