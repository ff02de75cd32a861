"""Names of the running kernel's functions, from /proc/kallsyms.

They hold until it is started again: each start has its own addresses.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

KERNEL = "[kernel]"
_CODE = np.zeros(256, np.uint8)  # the letters of functions
_CODE[[*b"TtwW"]] = 1, 2, 3, 3
_DIGITS = np.full(256, 255, np.uint64)
_DIGITS[[*b"0123456789abcdef"]] = np.arange(16)
_WIDTH = 16  # digits of an address, on the machines that we record on
_SHORTEST = 4  # bytes behind an address: a letter between spaces, and a name
_FARTHEST = (
    1 << 20
)  # bytes from the begin of a function: what is farther from it belongs to nothing that has a name


class Function(NamedTuple):
    """A function of the kernel. `module`: `[name]` of a loadable one, else `[kernel]`."""

    name: str
    module: str


class KernelSymbols:
    """The functions by their addresses; none where the kernel hides them.

    There are 200,000: their texts stay one piece of memory.
    """

    def __init__(self, text: bytes = b"") -> None:
        """Functions of the kernel in `text`.

        Lines of an address, a letter, a name and, of a loadable module, its name in brackets. Other
        lines are skipped.
        """
        self._text = text
        data = np.frombuffer(text + b"\n" * _SHORTEST, np.uint8)
        ends = np.flatnonzero(data[: len(text) + 1] == ord("\n"))
        begins = np.append(0, ends[:-1] + 1)
        whole = ends - begins >= _WIDTH + _SHORTEST
        begins, ends = begins[whole], ends[whole]
        kind = _CODE[data[begins + (_WIDTH + 1)]]
        good = (kind > 0) & (data[begins + (_WIDTH + 3)] > ord(" "))
        for place in (_WIDTH, _WIDTH + 2):
            good &= data[begins + place] == ord(" ")
        address = np.zeros(len(begins), np.uint64)
        for place in range(_WIDTH):
            digit = _DIGITS[data[begins + place]]
            good &= digit < 16
            address = address << np.uint64(4) | digit
        good &= address > 0
        begins, ends, address, kind = begins[good] + (_WIDTH + 3), ends[good], address[good], kind[good]
        # Of several names the one that is known best: no stand-in, known to other files, few underscores.
        order = np.lexsort((_underscores(data, begins), kind, address))
        first = np.ones(len(order), bool)
        first[1:] = address[order][1:] != address[order][:-1]
        order = order[first]
        self._begins, self._names, self._ends = address[order], begins[order], ends[order]

    def __len__(self) -> int:
        return len(self._begins)

    def find(self, addresses: npt.NDArray[np.uint64]) -> list[Function | None]:
        """Return the function that each address is in, None where that is not known."""
        functions: list[Function | None] = []
        for address, place in zip(
            addresses.tolist(), np.searchsorted(self._begins, addresses, side="right").tolist(), strict=True
        ):
            near = place > 0 and address - int(self._begins[place - 1]) < _FARTHEST
            functions.append(self._function(place - 1) if near else None)
        return functions

    def _function(self, number: int) -> Function:
        words = (
            self._text[int(self._names[number]) : int(self._ends[number])]
            .decode("utf-8", errors="surrogateescape")
            .split()
        )
        return Function(words[0], words[1] if len(words) > 1 else KERNEL)


def _underscores(data: npt.NDArray[np.uint8], begins: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many underscores each name begins with."""
    count = np.zeros(len(begins), np.int64)
    rows = np.arange(len(begins))
    while len(rows := rows[data[begins[rows] + count[rows]] == ord("_")]):
        count[rows] += 1
    return count


def read_symbols(path: Path = Path("/proc/kallsyms")) -> KernelSymbols:
    """Return the functions that the kernel shows this process.

    None of them if it may not see addresses, or there is no such file.
    """
    try:
        return KernelSymbols(path.read_bytes())
    except OSError:
        return KernelSymbols()


def this_boot(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str | None:
    """Return the id of this start of this machine; None where there is none."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
