"""Runs programs with the preloaded stub alone, without a launcher, and reads the register of processes without warplens."""

from __future__ import annotations

import atexit
import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.optional_dependencies import LIB


def _libraries() -> Path:
    """Where the libraries are, by a path that LD_PRELOAD can hold: in a checkout with a space in its path a link to them."""
    if not set(str(LIB)) & set(" :"):
        return LIB
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    (folder / "lib").symlink_to(LIB)
    return folder / "lib"


STUB = _libraries() / "libwarplens_preload.so"
AGENT = STUB.with_name("libwarplens_agent.so")
KINDS = ("", "program", "fork", "exec", "exit", "waited", "foreign", "running", "not spawned")
_RECORD = struct.Struct("<4sIIiiiQiiII16x")


@dataclass(frozen=True)
class Note:
    """One record of the register."""

    kind: str
    pid: int
    ppid: int
    status: int
    time: int
    rank: int
    local_rank: int
    texts: tuple[str, ...]
    cut: bool


@dataclass(frozen=True)
class Outcome:
    """How a program went, and what the register says of it and of what it started, in order of time."""

    pid: int
    status: int
    stdout: str
    stderr: str
    notes: list[Note]

    def of(self, *kinds: str) -> list[Note]:
        """The notes of these kinds."""
        return [note for note in self.notes if note.kind in kinds]

    def count(self, *kinds: str) -> int:
        """How many of these kinds there are."""
        return len(self.of(*kinds))

    def about(self, pid: int) -> list[tuple[str, int]]:
        """Kind and status of the notes about a process."""
        return [(note.kind, note.status) for note in self.notes if note.pid == pid]

    def started(self, name: str) -> list[Note]:
        """The notes of programs whose file is called `name`."""
        return [note for note in self.of("program") if Path(note.texts[0]).name == name]


def read_notes(spool: Path) -> list[Note]:
    """Read `processes.log`; every byte of it must belong to a good record."""
    data = (spool / "processes.log").read_bytes()
    notes, at = [], 0
    while at < len(data):
        magic, size, kind, pid, ppid, status, time, rank, local_rank, texts, flags = _RECORD.unpack_from(
            data, at
        )
        assert magic == b"WPRC"
        assert size % 8 == 0
        assert _RECORD.size <= size <= 65536
        words = data[at + _RECORD.size : at + size].split(b"\0")[:texts] if texts else []
        notes.append(
            Note(
                KINDS[kind],
                pid,
                ppid,
                status,
                time,
                rank,
                local_rank,
                tuple(map(os.fsdecode, words)),
                bool(flags & 1),
            )
        )
        at += size
    return sorted(notes, key=lambda note: note.time)


def bare_environment() -> dict[str, str]:
    """The variables that programs get in these tests, before ours."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}


def new_spool(folder: Path) -> Path:
    """Make a spool directory with an empty register."""
    spool = folder / "spool"
    spool.mkdir()
    (spool / "processes.log").touch()
    return spool


def followed(
    folder: Path, *command: str | Path, stub: Path = STUB, spool: Path | None = None, **variables: str
) -> Outcome:
    """Run a program with the stub in it, to its end, and read the register."""
    spool = spool or new_spool(folder)
    environment = bare_environment() | {"LD_PRELOAD": str(stub), "WARPLENS_SPOOL": str(spool)} | variables
    return _run(folder, command, environment, spool)


def alone(folder: Path, *command: str | Path, **variables: str) -> Outcome:
    """Run a program without the stub."""
    return _run(folder, command, bare_environment() | variables, None)


def _run(
    folder: Path, command: tuple[str | Path, ...], environment: dict[str, str], spool: Path | None
) -> Outcome:
    words = [str(word) for word in command]
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        out, err = process.communicate(timeout=60)
    return Outcome(process.pid, process.returncode, out, err, read_notes(spool) if spool is not None else [])
