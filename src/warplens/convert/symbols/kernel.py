"""Names of the running kernel's functions, from /proc/kallsyms. They hold until it is started again: each start has its own addresses."""

from __future__ import annotations

from array import array
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
    """The functions by their addresses; none where the kernel hides them. There are 200,000: their texts stay one piece of memory."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        texts = bytearray()
        address_of, rank_of, begin_of = array("Q"), array("Q"), array("Q", [0])
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
            address_of.append(address)
            # Of several names the one that is known best: no stand-in, known to other files, few underscores.
            rank_of.append((words[1] in "wW") << 33 | (words[1] == "t") << 32 | (len(name) - len(name.lstrip("_"))))
            texts += " ".join((name, *words[3:4])).encode("utf-8", errors="surrogateescape")
            begin_of.append(len(texts))
        begins = np.array(address_of, np.uint64)
        order = np.lexsort((np.array(rank_of, np.uint64), begins))
        first = np.ones(len(order), bool)
        first[1:] = begins[order][1:] != begins[order][:-1]
        self._places = order[first]
        self._begins, self._texts, self._text_of = begins[self._places], bytes(texts), begin_of

    def __len__(self) -> int:
        return len(self._begins)

    def find(self, addresses: npt.NDArray[np.uint64]) -> list[Function | None]:
        """Return the function that each address is in, None where that is not known."""
        found: list[Function | None] = []
        for address, place in zip(addresses.tolist(), np.searchsorted(self._begins, addresses, side="right").tolist(), strict=True):
            near = place > 0 and address - int(self._begins[place - 1]) < _FARTHEST
            found.append(self._function(int(self._places[place - 1])) if near else None)
        return found

    def _function(self, number: int) -> Function:
        text = self._texts[self._text_of[number] : self._text_of[number + 1]].decode("utf-8", errors="surrogateescape")
        name, _, module = text.partition(" ")
        return Function(name, module or KERNEL)


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
