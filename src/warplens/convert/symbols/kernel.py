"""Names of the running kernel's functions, from /proc/kallsyms.

They hold until it is started again: each start has its own addresses.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warplens import native

Places = npt.NDArray[np.uint64]

KERNEL = "[kernel]"
_FARTHEST = (
    1 << 20
)  # bytes from the start of a function: what is farther from it belongs to nothing that has a name


class Function(NamedTuple):
    """A function of the kernel. `module`: `[name]` of a loadable one, else `[kernel]`."""

    name: str
    module: str


class KernelSymbols:
    """The functions by their addresses, in a text of 5 MB."""

    def __init__(self, text: bytes = b"") -> None:
        """Functions of the kernel in `text`.

        Lines of an address, a letter, a name and, of a loadable module, its name in brackets. Other
        lines are skipped.
        """
        self._text = text

    def __len__(self) -> int:
        return len(self._text) and self._look(np.empty(0, np.uint64))[0]

    def find(self, addresses: npt.NDArray[np.uint64]) -> list[Function | None]:
        """Return the function that each address is in, None if that is not known.

        Of several names of a function, the one that is known best: no stand-in, known to other files, few underscores.
        """
        order = np.argsort(addresses, kind="stable")
        _, begins, names, ends = self._look(addresses[order])
        functions: list[Function | None] = [None] * len(addresses)
        for place, address, begin, name, end in zip(
            order.tolist(),
            addresses[order].tolist(),
            begins.tolist(),
            names.tolist(),
            ends.tolist(),
            strict=True,
        ):
            if begin and address - begin < _FARTHEST:
                functions[place] = self._function(name, end)
        return functions

    def _look(self, addresses: npt.NDArray[np.uint64]) -> tuple[int, Places, Places, Places]:
        """Return the number of functions, and for each address (rising) where the last one begins, and its name's place."""
        begins, names, ends = (np.zeros(len(addresses), np.uint64) for _ in range(3))
        count = native.call(
            "find_kernel_functions", self._text, np.ascontiguousarray(addresses), begins, names, ends
        )
        return count, begins, names, ends

    def _function(self, name: int, end: int) -> Function:
        words = self._text[name:end].decode("utf-8", errors="surrogateescape").split()
        return Function(words[0], words[1] if len(words) > 1 else KERNEL)


def read_symbols(path: Path = Path("/proc/kallsyms")) -> KernelSymbols:
    """Return the functions that the kernel shows this process.

    None of them if it may not see addresses, or there is no such file.
    """
    try:
        return KernelSymbols(path.read_bytes())
    except OSError:
        return KernelSymbols()


def this_boot(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str | None:
    """Return the id of this start of this machine; None if there is none."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
