"""Names of code that a program made while it ran: of `perf-PID.map`, and of jitdump files (`jit-PID.dump`).

oneDNN, V8 (Node.js), Java agents, LuaJIT and CPython (`-X perf`, `-X perf_jit`) write one of them for perf, if they are asked to.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.symbols.functions import readable
from warplens.convert.symbols.kernel import this_boot
from warplens.handover import untrusted
from warplens.spool.process import Process

GENERATED = "[generated code]"
_MAP = "/tmp/perf-{pid}.map"
_DUMP = re.compile(r"jit-\d+\.dump$")
_MOST = 256 << 20  # bytes of a file
_LATE_S = 2.0  # clocks of files are coarse
_HEADER = struct.Struct("<IIII")  # magic, version, size of the header, machine
_RECORD = struct.Struct("<IIQ")  # kind, size, time
_LOAD = struct.Struct("<IIQQQQ")  # process, thread, address, address, size, number
_MAGIC, _LOADED, _MOVED = 0x4A695444, 0, 1
_MOVE = struct.Struct("<IIQQQQQ")  # process, thread, address, old address, new address, size, number
Piece = tuple[int, int, str]  # where it begins, its size, its name


class Generated:
    """The generated code of a process: its addresses and names.

    Pieces that come later take the place of earlier ones.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        last: dict[int, Piece] = {piece[0]: piece for piece in pieces if piece[1] > 0}
        ordered = sorted(last.values())
        self._names = [piece[2] for piece in ordered]
        self._start = np.array([piece[0] for piece in ordered], np.uint64)
        self._end = np.array([piece[0] + piece[1] for piece in ordered], np.uint64)

    def find(self, addresses: Int64Array) -> list[str | None]:
        """Return the name of the code at each address, None if there is none."""
        asked = addresses.astype(np.uint64)
        place = np.searchsorted(self._start, asked, side="right") - 1
        return [
            self._names[at] if at >= 0 and address < self._end[at] else None
            for at, address in zip(place.tolist(), asked, strict=True)
        ]


def generated_by(process: Process, paths: Iterable[str]) -> Generated:
    """Return the generated code of a process.

    From its map, and from the jitdump files among its mapped `paths`.

    Nothing if it ran on another machine, or before this one was started again. Files from before the process are of another one with its
    number.
    """
    if not process.pid or process.boot_id != this_boot():
        return Generated(())
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - process.start_ticks / os.sysconf("SC_CLK_TCK")
    began = time.time() - age - _LATE_S
    pieces = list(_of_map(_contents(Path(_MAP.format(pid=process.pid)), began)))
    for path in paths:
        if _DUMP.search(path):
            pieces += _of_dump(_contents(Path(path), began))
    return Generated(pieces)


def _contents(path: Path, began: float) -> bytes:
    """The content of a file that the user or root wrote since then; empty for any other file."""
    try:
        with untrusted.opened(path) as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid not in (0, os.getuid()) or facts.st_mtime < began:
                return b""
            return file.read(min(facts.st_size, _MOST)) or b""
    except (OSError, ValueError):
        return b""


def _of_map(contents: bytes) -> Iterator[Piece]:
    for line in contents.splitlines():
        words = line.split(b" ", 2)
        try:
            begin, size = int(words[0], 16), int(words[1], 16)
        except (ValueError, IndexError):
            continue
        if len(words) == 3 and begin + size < 1 << 63:
            yield begin, size, readable(words[2].decode("utf-8", errors="replace").strip())


def _of_dump(contents: bytes) -> Iterator[Piece]:
    if len(contents) < _HEADER.size or _HEADER.unpack_from(contents)[0] != _MAGIC:
        return
    at = _HEADER.unpack_from(contents)[2]
    names: dict[int, str] = {}
    while at + _RECORD.size <= len(contents):
        kind, length, _ = _RECORD.unpack_from(contents, at)
        body, behind = at + _RECORD.size, at + length
        if length < _RECORD.size or behind > len(contents):
            return  # the last one was being written
        if kind == _LOADED and body + _LOAD.size < behind:
            _, _, _, begin, size, number = _LOAD.unpack_from(contents, body)
            stop = contents.find(b"\0", body + _LOAD.size, behind)
            if stop >= 0 and begin + size < 1 << 63:
                name = contents[body + _LOAD.size : stop].decode("utf-8", errors="replace")
                names[number] = readable(name)
                yield begin, size, names[number]
        elif kind == _MOVED and body + _MOVE.size <= behind:
            *_, begin, size, number = _MOVE.unpack_from(contents, body)
            if number in names and begin + size < 1 << 63:
                yield begin, size, names[number]
        at = behind
