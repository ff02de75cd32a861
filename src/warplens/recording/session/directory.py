"""The running sessions of a user: for each a lock, a note and a socket.

The launcher holds the lock while it lives.

A launcher that was killed leaves its files behind; the kernel has dropped the lock, which tells. They stay for as long as the
report of that session is not finished, so that `warplens status` can say so, and go with the next session that begins.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from warplens.errors import CaptureError, UsageError
from warplens.handover import pending
from warplens.recording.session.runtime_dir import RuntimeDir, runtime_dir, runtime_dirs

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_MOST = 64 << 10
_BACKLOG = 16
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Note:
    """A session: its name, the process of its launcher, the report and the recorded part, the command line."""

    name: str
    pid: int
    start_ticks: int
    report: str = ""
    part: str = ""
    command: tuple[str, ...] = ()

    def unfinished(self) -> bool:
        """Whether the report still waits for what this session recorded."""
        return bool(self.part) and os.path.exists(self.part)


@dataclass(frozen=True, slots=True)
class Entry:
    """A session that was found; `alive` says whether its launcher is."""

    note: Note
    directory: RuntimeDir
    alive: bool

    @property
    def address(self) -> str:
        """The path of its socket."""
        return self.directory.address(self.note.name + ".sock")


def check_name(name: str) -> str:
    """Return `name`; UsageError if no session can have it."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"Invalid session name {name!r}: use letters, digits, '.', '_' and '-', at most 64 of them."
        )
    return name


@contextlib.contextmanager
def entries() -> Iterator[list[Entry]]:
    """Yield all sessions that can be found, by name, those with a launcher first."""
    directories = runtime_dirs()
    try:
        found = [entry for directory in directories for entry in _listed(directory)]
        yield sorted(found, key=lambda entry: (not entry.alive, entry.note.name))
    finally:
        for directory in directories:
            directory.close()


class Membership:
    """This process's own entry, from `join` until `leave`; `socket` listens from the first on."""

    def __init__(self, directory: RuntimeDir, note: Note) -> None:
        self.note = note
        self._directory = directory
        self._lock = -1
        self._files: list[tuple[str, tuple[int, int]]] = []
        with directory.locked():
            _sweep(directory, also=note.name)
            if _is_locked(directory, f"{note.name}.lock") is not None:
                raise FileExistsError(errno.EEXIST, "the name is taken", note.name)
            self._enter()

    def describe(self, note: Note) -> None:
        """Replace what the entry says.

        OSError if that cannot be written; the entry then says what it said before.
        """
        self.note = note
        with self._directory.locked():
            self._write()

    def in_place(self) -> bool:
        """Whether others can still reach it.

        Directories get deleted at logout or by cleanup jobs.
        """
        if not self._directory.in_place():
            return False
        for name in (f"{self.note.name}.lock", f"{self.note.name}.sock", f"{self.note.name}.json"):
            try:
                os.stat(name, dir_fd=self._directory.descriptor, follow_symlinks=False)
            except OSError:
                return False
        return True

    def keep_young(self) -> None:
        """Tell those who tidy up by age that the files are in use."""
        for name in (".", f"{self.note.name}.lock", f"{self.note.name}.sock", f"{self.note.name}.json"):
            with contextlib.suppress(OSError):
                os.utime(name, dir_fd=self._directory.descriptor)

    def leave(self) -> None:
        """Remove the entry and close everything."""
        try:
            with self._directory.locked():
                self._remove()
        except OSError:
            self._remove()
        with contextlib.suppress(OSError):
            self.socket.close()
        self._directory.close()

    def _enter(self) -> None:
        """Make the three files.

        The lock gets its name last, and locked: a listing shows only complete sessions.
        """
        name = self.note.name
        temporary = f".{name}.{os.getpid()}.lock"
        _unlink(self._directory, name)  # a socket whose lock somebody deleted would be in the way
        try:
            self._lock = _create(self._directory, temporary)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write()
            self.socket = self._listen()
            try:
                self._directory.folder.rename(temporary, f"{name}.lock")
            except BaseException:
                self.socket.close()
                raise
        except BaseException:
            with contextlib.suppress(OSError):
                self._directory.folder.remove(temporary)
            _unlink(self._directory, name)
            if self._lock >= 0:
                os.close(self._lock)
            raise

    def _remove(self) -> None:
        if self._lock < 0:
            return
        name, descriptor = self.note.name, self._directory.descriptor
        with contextlib.suppress(OSError):
            mine = os.fstat(self._lock)
            if os.path.samestat(mine, os.stat(f"{name}.lock", dir_fd=descriptor, follow_symlinks=False)):
                _unlink(self._directory, name)
        os.close(self._lock)
        self._lock = -1

    def _listen(self) -> socket.socket:
        name = f"{self.note.name}.sock"
        listening = socket.socket(
            socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        )
        try:
            listening.bind(self._directory.address(name))
            os.chmod(name, 0o600, dir_fd=self._directory.descriptor)
            listening.listen(_BACKLOG)
        except BaseException:
            listening.close()
            raise
        return listening

    def _write(self) -> None:
        self._directory.folder.write(
            f"{self.note.name}.json",
            json.dumps({**asdict(self.note), "command": _bounded(self.note.command)}),
        )


def join(name: str | None, default: str) -> Membership:
    """Enter this process as the session `name`, or as `default`.

    `default` gets a number if it is taken.

    UsageError if a session of that name runs; CaptureError if there is no place for it.
    """
    wanted = default if name is None else check_name(name)
    directory = runtime_dir()
    pid = os.getpid()
    number, missed = 1, 0
    try:
        while True:
            taken = _running(wanted)
            if taken is None:
                try:
                    return Membership(directory, Note(wanted, pid, pending.start_ticks(pid)))
                except FileExistsError:  # somebody was faster
                    missed += 1
                    if missed > _TRIES:
                        raise
                    continue
            if name is not None:
                raise UsageError(
                    f"A session {name} runs already: process {taken.pid}, {' '.join(taken.command) or 'about to start'}.\n"
                    "Choose another name with --session-new, or end that session: warplens shutdown "
                    f"--session {name}"
                )
            number += 1
            wanted = f"{default}-{number}"
    except OSError as error:
        directory.close()
        raise CaptureError(
            f"Cannot write to {directory.path}, the directory of sessions: {error.strerror}."
        ) from error
    except BaseException:
        directory.close()
        raise


def _running(name: str) -> Note | None:
    with entries() as found:
        return next((entry.note for entry in found if entry.alive and entry.note.name == name), None)


def _listed(directory: RuntimeDir) -> Iterator[Entry]:
    try:
        names = os.listdir(directory.descriptor)
    except OSError:
        return
    for file in names:
        name, dot, suffix = file.rpartition(".")
        if dot and suffix == "lock" and _NAME.fullmatch(name):
            alive = _is_locked(directory, file)
            if alive is not None:
                yield Entry(_read(directory, name), directory, alive)


def _sweep(directory: RuntimeDir, also: str) -> None:
    """Remove what dead launchers left, apart from those whose report is not finished.

    `also` goes in any case. Under the lock.
    """
    for entry in list(_listed(directory)):
        if not entry.alive and (entry.note.name == also or not entry.note.unfinished()):
            _unlink(directory, entry.note.name)


def _unlink(directory: RuntimeDir, name: str) -> None:
    for suffix in ("sock", "json", "lock"):
        with contextlib.suppress(OSError):
            directory.folder.remove(f"{name}.{suffix}")


def _create(directory: RuntimeDir, name: str) -> int:
    with directory.folder.create(name, again=True) as file:
        return os.dup(file.fileno())


def _is_locked(directory: RuntimeDir, name: str) -> bool | None:
    try:
        descriptor = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory.descriptor
        )
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False


def _read(directory: RuntimeDir, name: str) -> Note:
    """Return the note of the session `name`.

    One that says nothing more where it is missing or makes no sense.
    """
    nothing = Note(name, 0, 0)
    try:
        descriptor = os.open(
            f"{name}.json",
            os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
            dir_fd=directory.descriptor,
        )
        with os.fdopen(descriptor, "rb") as file:
            data = json.loads(file.read(_MOST))
        if data["name"] != name or not all(isinstance(word, str) for word in data["command"]):
            return nothing
        return Note(
            name,
            int(data["pid"]),
            int(data["start_ticks"]),
            report=str(data["report"]),
            part=str(data["part"]),
            command=tuple(data["command"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return nothing


def _bounded(command: tuple[str, ...], most: int = _MOST // 16) -> list[str]:
    """Return the words of `command` as far as they fit."""
    words, room = [], most
    for word in command:
        if len(word) > room:
            words.append(word[:room] + "…")
            break
        words.append(word)
        room -= len(word) + 1
    return words
