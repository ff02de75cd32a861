"""The functions of an ELF file.

From its symbol tables, its separate debug file, and the stubs that call other libraries.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.symbols import elf
from warplens.convert.symbols.elf import BadElf, Elf, Section
from warplens.convert.symbols.unwind_table import function_starts
from warplens.native.names import LONGEST_NAME, demangle, shortened

DEBUG = Path("/usr/lib/debug")
_MINI_MOST = 64 << 20  # bytes of a small symbol table that is compressed within the file
_NO_TYPE, _FUNCTION, _INDIRECT = 0, 2, 10
_BINDING_ORDER = (2, 0, 1)  # of local, global and weak symbols: global ones are the names that people know
_BACK = 8  # symbols before an address that may be around it
_SLOT = 16  # bytes of a stub
_EXECUTABLE = 4


class Functions:
    """Functions by address (p_vaddr). `files`: the file, and those with more symbols of it."""

    def __init__(self, files: list[Elf]) -> None:
        self._files = files
        parts = [part for number, file in enumerate(files) for part in _symbols(file, number)]
        columns = [
            np.concatenate([np.empty(0, np.int64), *(part[place] for part in parts)]) for place in range(5)
        ]
        order = np.argsort(columns[0], kind="stable")
        self._start, self._size, self._name, self._binding, self._where = (
            column[order] for column in columns
        )
        self._stubs: dict[int, str] | None = None
        self._starts: Int64Array | None = None

    def __len__(self) -> int:
        return len(self._start)

    def names(self, addresses: Int64Array) -> list[str | None]:
        """Return the function that each address is in, None for none."""
        last = np.searchsorted(self._start, addresses, side="right")
        answers: list[str | None] = []
        known: dict[int, str] = {}
        for address, behind in zip(addresses.tolist(), last.tolist(), strict=True):
            row = self._around(address, behind)
            if row >= 0 and row not in known:
                known[row] = self._best(row)
            answers.append(known[row] if row >= 0 else self._stub(address))
        return answers

    def _around(self, address: int, behind: int) -> int:
        for row in range(behind - 1, max(behind - 1 - _BACK, -1), -1):
            if address < self._start[row] + self._size[row]:
                return row
        # Functions of assembler code may have no size; they reach up to the next one.
        near = behind - 1
        return (
            near
            if near >= 0
            and self._size[near] == 0
            and self._section(int(self._start[near])) == self._section(address)
            else -1
        )

    def _best(self, row: int) -> str:
        start = self._start[row]
        first, last = (
            np.searchsorted(self._start, start, side="left"),
            np.searchsorted(self._start, start, side="right"),
        )
        names = {}
        for one in range(first, min(last, first + 64)):
            file, table = divmod(int(self._where[one]), 1 << 32)
            elf_file = self._files[file]
            name = elf_file.name(elf_file.sections[table], int(self._name[one]))
            if name:
                binding = int(self._binding[one])
                rank = _BINDING_ORDER[binding] if binding < len(_BINDING_ORDER) else len(_BINDING_ORDER)
                names[name] = (
                    rank,
                    len(name) - len(name.lstrip("_")) if not name.startswith("_Z") else 0,
                    len(name),
                    name,
                )
        if not names:
            return ""
        return readable(min(names, key=lambda name: names[name]))

    def unnamed(self, address: int) -> int | None:
        """Return the start of the function without a symbol around `address`, by the unwind table.

        None if that is silent.
        """
        if self._starts is None:
            self._starts = function_starts(self._files[0])
        place = int(np.searchsorted(self._starts, address, side="right")) - 1
        if place < 0:
            return None
        start = int(self._starts[place])
        section = self._section(address)
        return start if section is not None and section.address <= start else None

    def _section(self, address: int) -> Section | None:
        return next(
            (
                one
                for one in self._files[0].sections
                if one.flags & _EXECUTABLE and one.address <= address < one.address + one.size
            ),
            None,
        )

    def _stub(self, address: int) -> str | None:
        section = self._section(address)
        if section is None or not section.name.startswith(".plt"):
            return None
        if self._stubs is None:
            self._stubs = dict(_stubs(self._files[0]))
        return self._stubs.get(address - (address - section.address) % _SLOT)


def readable(name: str) -> str:
    """Return a name of a symbol as people write it, on a line."""
    return shortened(demangle(name) or name[:LONGEST_NAME])


def open_all(path: Path, build_id: str | None) -> list[Elf]:
    """Open a file and what else has symbols of it.

    Raises BadElf if its build id is another one, OSError.
    """
    file = Elf(path)
    if file.build_id != build_id:
        file.close()
        raise BadElf("it is not the file that ran: its build id differs")
    return [file, *([] if file.section(".symtab") else _others(file))]


def _others(file: Elf) -> Iterator[Elf]:
    identity = file.build_id
    if identity:
        try:
            other = Elf(DEBUG / ".build-id" / identity[:2] / f"{identity[2:]}.debug")
            if other.build_id == identity:
                yield other
                return
        except (OSError, BadElf):
            pass
    small = file.section(".gnu_debugdata")
    if small is not None:
        try:
            yield Elf(lzma.LZMADecompressor().decompress(file.contents(small).tobytes(), _MINI_MOST))
        except (lzma.LZMAError, BadElf, EOFError):
            pass


def _symbols(file: Elf, number: int) -> Iterator[tuple[Int64Array, ...]]:
    """Yield start, size, name, binding and place (file, table of texts) of the functions of each table."""
    tables = [section for section in file.sections if section.kind == elf.SYMTAB] or [
        one for one in file.sections if one.kind == elf.DYNSYM
    ]
    for section in tables:
        if section.link >= len(file.sections):
            continue
        rows = file.rows(section, elf.SYMBOL)
        kind = rows["info"] & 15
        wanted = (
            ((kind == _FUNCTION) | (kind == _INDIRECT) | (kind == _NO_TYPE))
            & (rows["section"] != 0)
            & (rows["value"] != 0)
        )
        wanted &= (rows["value"] < 1 << 62) & (rows["size"] < 1 << 62)
        if (plain := wanted & (kind == _NO_TYPE)).any():
            # Labels that are no functions, and marks of what is code and data.
            executable = np.array([(one.flags & _EXECUTABLE) != 0 for one in file.sections] or [False])
            place = np.minimum(rows["section"], len(executable) - 1)
            wanted &= ~plain | (executable[place] & (rows["size"] > 0))
        chosen = rows[wanted]
        place = np.full(len(chosen), (number << 32) + section.link, np.int64)
        columns = (chosen["value"], chosen["size"], chosen["name"], chosen["info"] >> 4)
        yield (*(column.astype(np.int64) for column in columns), place)


def _stubs(file: Elf) -> Iterator[tuple[int, str]]:
    """Yield the address of each stub and its name, e.g. `malloc@plt`."""
    names: dict[int, str] = {}  # place in memory -> what the loader puts there
    ordered = []
    symbols = next((section for section in file.sections if section.kind == elf.DYNSYM), None)
    if symbols is None or symbols.link >= len(file.sections):
        return
    rows, texts = file.rows(symbols, elf.SYMBOL), file.sections[symbols.link]
    for section in file.sections:
        if section.kind == elf.RELA and section.name in (".rela.plt", ".rela.dyn"):
            relocations = file.rows(section, elf.RELOCATION)
            relocations = relocations[(relocations["info"] >> 32 != 0) & (relocations["addend"] == 0)]
            for offset, info in zip(
                relocations["offset"].tolist(), relocations["info"].tolist(), strict=True
            ):
                if info >> 32 < len(rows):
                    names[offset] = file.name(texts, int(rows["name"][info >> 32]))
                    if section.name == ".rela.plt":
                        ordered.append(names[offset])
    for section in file.sections:
        if not section.name.startswith(".plt") or not section.flags & _EXECUTABLE:
            continue
        code = file.contents(section).tobytes()
        if file.machine == elf.AARCH64:
            yield from (
                (section.address + 2 * _SLOT + _SLOT * number, f"{demangle(name) or name}@plt")
                for number, name in enumerate(ordered)
            )
            continue
        for at in range(0, len(code), _SLOT):
            # jmp *place(%rip)
            jump = code.find(b"\xff\x25", at, at + _SLOT - 4)
            if jump >= 0:
                place = (
                    section.address
                    + jump
                    + 6
                    + int.from_bytes(code[jump + 2 : jump + 6], "little", signed=True)
                )
                if name := names.get(place):
                    yield section.address + at, f"{demangle(name) or name}@plt"
