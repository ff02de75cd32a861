"""Reads the register of processes, `processes.log`.

Every process of the tree appends records, in any order and state.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warplens.handover import untrusted

NAME = "processes.log"
MAGIC = b"WPRC"
PROGRAM, FORK, EXEC, EXIT, WAITED, FOREIGN, RUNNING, NOT_SPAWNED = range(1, 9)
# WarplensForeign in native/include/warplens/registry.h
REASONS = {
    1: "32-bit program",
    2: "musl",
    3: "static",
    4: "setuid",
    5: "sanitizer",
    6: "no ELF program",
    7: "out of reach of our library",
}
_RECORD = struct.Struct("<4sIIiiiQiiII16x")
_MOST = 65536  # bytes of a record
_READ = 1 << 30
_LATEST = 1 << 62
_CUT, _USAGE = 1, 2
_NUMBERS = struct.Struct("<7Q")  # WarplensUsage
USAGE = ("max_rss", "user_time", "system_time", "minor_faults", "major_faults", "waits", "preemptions")


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """One record.

    `kind` as above, times in ns of CLOCK_MONOTONIC, `texts` the executable and the command line,
    not decoded.
    """

    kind: int
    pid: int
    ppid: int
    status: int
    time: int
    rank: int | None
    local_rank: int | None
    texts: tuple[bytes, ...]
    cut: bool = False
    usage: tuple[int, ...] | None = None  # the numbers of `USAGE`; bytes and ns


@dataclass(slots=True)
class RegisterContents:
    """The readable entries, in order of time.

    `damaged` places were stepped over, `unread` bytes lie behind what is ever read.
    """

    entries: list[RegisterEntry] = field(default_factory=list)
    damaged: int = 0
    unread: int = 0


def read_register(directory: Path) -> RegisterContents:
    """Read the register of a spool directory; empty if there is none.

    Nothing in it is trusted.
    """
    register = RegisterContents()
    try:
        with untrusted.opened(directory / NAME) as file:
            length = os.fstat(file.fileno()).st_size
            if length < _RECORD.size:
                register.damaged += int(length > 0)
                return register
            register.unread = max(length - _READ, 0)
            with mmap.mmap(file.fileno(), min(length, _READ), access=mmap.ACCESS_READ) as data:
                register.entries = list(_walk(data, register))
    except (OSError, ValueError):
        return register
    register.entries.sort(key=lambda entry: entry.time)
    return register


def _walk(data: mmap.mmap, register: RegisterContents) -> Iterator[RegisterEntry]:
    at, length = 0, len(data)
    while at < length:
        entry = _entry(data, at, length) if at + _RECORD.size <= length else None
        if entry is not None:
            yield entry[0]
            at += entry[1]
            continue
        # cut off by a full disk, or broken: a record may begin at any byte behind it
        register.damaged += 1
        at = data.find(MAGIC, at + 1)
        if at < 0:
            return


def _entry(data: mmap.mmap, at: int, length: int) -> tuple[RegisterEntry, int] | None:
    magic, size, kind, pid, ppid, status, time, rank, local_rank, texts, flags = _RECORD.unpack_from(data, at)
    if magic != MAGIC or not _RECORD.size <= size <= min(_MOST, length - at) or size % 8:
        return None
    if not (PROGRAM <= kind <= NOT_SPAWNED and pid >= 0 and ppid >= 0 and 0 < time <= _LATEST) or (
        pid == 0 and kind not in (FOREIGN, NOT_SPAWNED)
    ):
        return None
    usage = None
    begin = at + _RECORD.size
    if flags & _USAGE:
        if texts or size != _RECORD.size + _NUMBERS.size:
            return None
        usage = _NUMBERS.unpack_from(data, begin)
        usage = usage if max(usage) < _LATEST else None
        begin = at + size
    words = data[begin : at + size].split(b"\0")
    # Each text ends with a NUL, and zeros fill the record up to a multiple of 8; if not, it was cut off and another one follows.
    if texts > len(words) - 1 or len(words) - texts > 8 or any(words[texts:]):
        return None
    there = rank if rank >= 0 else None
    return RegisterEntry(
        kind,
        pid,
        ppid,
        status=status,
        time=time,
        rank=there,
        local_rank=local_rank if local_rank >= 0 else None,
        texts=tuple(words[:texts]),
        cut=bool(flags & _CUT),
        usage=usage,
    ), size
