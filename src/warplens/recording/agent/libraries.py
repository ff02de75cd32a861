"""Finds the loaded libraries that carry NVTX, and those that a recording cannot hear."""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

_MARK = b"NVTX_INJECTION64_PATH\0"  # every copy of NVTX's headers asks the environment for it
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded library.

    `name` is a Python module's name (`nvtx._lib.lib`), or the name of the file (`libnccl.so.2`).
    """

    path: str
    name: str

    def __str__(self) -> str:
        return self.name


def named(path: str, search: Sequence[str] | None = None) -> Library:
    """Return the library at `path`.

    It has its Python name if it is below an entry of `search` (default: sys.path).
    """
    file = os.path.basename(path)
    stem = re.fullmatch(r"(\w+)\.(?:cpython-\d+\w*-[\w-]+|abi3)\.so", file)
    folders = _below(path, search)
    return Library(path, file if stem is None or folders is None else ".".join([*folders[:-1], stem[1]]))


def package_of(path: str, search: Sequence[str] | None = None) -> str | None:
    """Return the Python package that `path` belongs to, or None.

    `torch` for `…/torch/lib/libtorch.so`.
    """
    folders = _below(path, search)
    return folders[0] if folders is not None and len(folders) > 1 else None


def _below(path: str, search: Sequence[str] | None) -> list[str] | None:
    best = ""
    for entry in sys.path if search is None else search:
        folder = os.path.realpath(entry) if entry else ""
        if len(folder) > len(best) and path.startswith(folder + os.sep):
            best = folder
    return path[len(best) + 1 :].split(os.sep) if best else None


def silent(before: Iterable[str], attached: Iterable[str], agent: str) -> list[str]:
    """Return libraries of `before` with NVTX that have not loaded the agent.

    They called NVTX too early, or never.

    Reads each file's constants, so it belongs into another process than the program.
    """
    heard = {os.path.realpath(path) for path in (*attached, agent)}
    return [path for path in before if os.path.realpath(path) not in heard and carries_nvtx(path)]


def carries_nvtx(path: str) -> bool:
    """Say whether the ELF file at `path` was built with NVTX in it.

    False for what cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return any(_holds(file, offset, size) for offset, size in _constants(file))
    except (OSError, struct.error, ValueError):
        return False


def _constants(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield where the read-only data lie: libraries of GPU code are gigabytes, of which these are little."""
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        return
    (table,) = struct.unpack_from("<Q", head, 40)
    size, count, names = struct.unpack_from("<HHH", head, 58)
    if not table or not count or size < 64:  # without sections: the whole of it
        yield 0, os.fstat(file.fileno()).st_size
        return
    file.seek(table)
    sections = [struct.unpack_from("<IIQQQQ", file.read(size)) for _ in range(count)]
    file.seek(sections[names][4])
    texts = file.read(sections[names][5])
    for name, kind, _, _, offset, length in sections:
        if kind == 1 and texts[name : texts.index(b"\0", name)].startswith((b".rodata", b".lrodata")):
            yield offset, length


def _holds(file: BinaryIO, offset: int, size: int) -> bool:
    file.seek(offset)
    tail = b""
    while size > 0:
        piece = file.read(min(size, _PIECE))
        if not piece:
            return False
        size -= len(piece)
        if _MARK in tail + piece:
            return True
        tail = piece[-len(_MARK) :]
    return False
