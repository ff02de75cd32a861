"""Looks up addresses in the files that code came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.symbols.elf import BadElf, Elf
from warplens.convert.symbols.functions import Functions, open_all
from warplens.convert.symbols.kernel import KERNEL, Function, KernelSymbols, read_symbols, this_boot
from warplens.convert.symbols.lines import Line, Lines
from warplens.spool.notes import Note

_NAMED = 3  # files that a note names


@dataclass(frozen=True)
class Place:
    """The function, file and line of an address. `line` 0: not known."""

    function: str
    file: str | None = None
    line: int = 0


@dataclass
class Symbols:
    """The results so far, of all processes: a file that several of them ran is read once."""

    _known: dict[tuple[str, str | None], dict[int, Place | None]] = field(default_factory=dict)
    _missing: dict[str, list[str]] = field(default_factory=dict)
    _kernel: KernelSymbols | None = None

    def look_up(self, path: str, build_id: str | None, addresses: Int64Array) -> Sequence[Place | None]:
        """Return the function at each address (p_vaddr, rising) of the file `path`, None if unknown.

        A file that is gone, or has another build id than the one that ran, tells nothing; `notes` says so.
        """
        known = self._known.setdefault((path, build_id), {})
        new = np.array([address for address in addresses.tolist() if address not in known], np.int64)
        if len(new):
            known.update(zip(new.tolist(), self._read(path, build_id, new), strict=True))
        return [known[address] for address in addresses.tolist()]

    def look_up_kernel(self, boot_id: str, addresses: npt.NDArray[np.uint64]) -> Sequence[Function | None]:
        """Return the function of the kernel at each address, when it had started as `boot_id`.

        None if unknown.
        """
        nothing: list[Function | None] = [None] * len(addresses)
        if not boot_id or boot_id != this_boot():
            self._miss(KERNEL, "it ran on another machine, or before this one was started again", [])
            return nothing
        if self._kernel is None:
            self._kernel = read_symbols()
        functions = self._kernel.find(addresses)
        if not any(functions) and not self._kernel:
            self._miss(
                KERNEL,
                "/proc/kallsyms hides them from this user (sysctl kernel.kptr_restrict=0 "
                "kernel.perf_event_paranoid=1 shows them)",
                [],
            )
            return nothing
        return functions

    def notes(self) -> list[Note]:
        """The files that could not be used.

        In whatever order processes were converted, they stand in the same one.
        """
        missing = []
        for why, paths in sorted(self._missing.items()):
            paths.sort()
            some = ", ".join(paths[:_NAMED]) + (", …" if len(paths) > _NAMED else "")
            message = f"native code of {some} only has the name of its file: {why}"
            missing.append(Note("info", "no-symbols", "report", message=message, count=len(paths)))
        return missing

    def _read(self, path: str, build_id: str | None, addresses: Int64Array) -> list[Place | None]:
        nothing: list[Place | None] = [None] * len(addresses)
        if not path.startswith("/"):
            return nothing  # [vdso] and the like
        files: list[Elf] = []
        try:
            files = open_all(Path(path), build_id)
            functions = Functions(files)
            names = [
                name or _by_its_begin(path, functions.unnamed(address))
                for name, address in zip(functions.names(addresses), addresses.tolist(), strict=True)
            ]
            lines: dict[int, Line] = {}
            for file in reversed(files):
                lines.update(Lines(file).find(addresses))
        except BadElf as error:
            return self._miss(path, str(error), nothing)
        except OSError as error:
            return self._miss(path, f"it cannot be read any more ({error.strerror})", nothing)
        finally:
            for file in files:
                file.close()
        places = zip(names, addresses.tolist(), strict=True)
        return [Place(name, *lines.get(address, (None, 0))) if name else None for name, address in places]

    def _miss(self, path: str, why: str, nothing: list[Place | None]) -> list[Place | None]:
        paths = self._missing.setdefault(why, [])
        if path not in paths:
            paths.append(path)
        return nothing


def _by_its_begin(path: str, start: int | None) -> str | None:
    """Stripped functions stay apart, each by its first address."""
    return None if start is None else f"[{Path(path).name}]+{start:#x}"
