"""Names of the running kernel's functions, from /proc/kallsyms. They hold until it is started again: each start has its own addresses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

KERNEL = "[kernel]"
_CODE = frozenset("tTwW")
_FARTHEST = 1 << 20  # bytes from the begin of a function: what is farther from it belongs to nothing that has a name


class Function(NamedTuple):
    """A function of the kernel. `module`: `[name]` of a loadable one, else `[kernel]`."""

    name: str
    module: str


class KernelSymbols:
    """The functions by their addresses; none where the kernel hides them."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        best: dict[int, tuple[tuple[bool, bool, int], Function]] = {}
        for line in lines:
            words = line.split()
            if len(words) < 3 or words[1] not in _CODE:
                continue
            try:
                address = int(words[0], 16)
            except ValueError:
                continue
            if not 0 < address < 1 << 64:
                continue
            name = words[2]
            # Of several names the one that is known best: no stand-in, known to other files, few underscores.
            rank = (words[1] in "wW", words[1] == "t", len(name) - len(name.lstrip("_")))
            if address not in best or rank < best[address][0]:
                best[address] = rank, Function(name, words[3] if len(words) > 3 else KERNEL)
        self._begins = np.array(sorted(best), np.uint64)
        self._functions = [best[begin][1] for begin in self._begins.tolist()]

    def __len__(self) -> int:
        return len(self._functions)

    def find(self, addresses: npt.NDArray[np.uint64]) -> list[Function | None]:
        """Return the function that each address is in, None where that is not known."""
        found: list[Function | None] = []
        for address, place in zip(addresses.tolist(), np.searchsorted(self._begins, addresses, side="right").tolist(), strict=True):
            near = place > 0 and address - int(self._begins[place - 1]) < _FARTHEST
            found.append(self._functions[place - 1] if near else None)
        return found


def read_symbols(path: Path = Path("/proc/kallsyms")) -> KernelSymbols:
    """Return the functions that the kernel shows this process: none of them where it may not see addresses, or there is no such file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return KernelSymbols(lines)
    except OSError:
        return KernelSymbols()


def this_boot(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str | None:
    """Return the id of this start of this machine; None where there is none."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
