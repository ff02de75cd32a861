"""Sends requests to a running session from another terminal."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import time
from collections.abc import Sequence
from typing import Any

from warplens.errors import CaptureError, UsageError
from warplens.handover import pending
from warplens.recording.session.directory import Entry, Note, entries
from warplens.recording.session.server import same_user

ANSWER_S = 10.0
_MOST = 1 << 20


def ask(session: str | None, request: dict[str, Any], *, timeout: float | None = ANSWER_S) -> dict[str, Any]:
    """Send `request` to the session of that name, or to the only one; return its answer.

    `timeout` (s) None waits for as long as the launcher lives. UsageError if there is no such session, or if several run and none
    is named; CaptureError if its launcher does not answer, or refuses.
    """
    with entries() as found:
        entry = chosen(found, session)
        if not entry.alive:
            raise CaptureError(gone(entry))
        answer = exchange(entry, request, timeout)
    if not answer.get("ok"):
        raise CaptureError(f"Session {entry.note.name}: {answer.get('error') or 'refused'}")
    return answer


def chosen(found: Sequence[Entry], session: str | None) -> Entry:
    """Return the entry of the chosen session.

    Raises UsageError with a list of the sessions if the choice is not clear.
    """
    alive = [entry for entry in found if entry.alive]
    if session is not None:
        for entry in found:
            if entry.note.name == session:
                return entry
        raise UsageError(f"There is no session {session!r}.\n{_listing(alive)}")
    if len(alive) == 1:
        return alive[0]
    if alive:
        raise UsageError(f"{len(alive)} sessions run: choose one with --session NAME.\n{_listing(alive)}")
    if len(found) == 1:
        return found[0]  # dead, which is worth telling
    raise UsageError(f"No session runs.\n{_listing([])}")


def gone(entry: Entry) -> str:
    """Say what became of a session without launcher."""
    note = entry.note
    process = f" (process {note.pid})" if note.pid else ""
    text = f"The launcher of session {note.name}{process} was killed."
    if note.unfinished():
        finishing = f"warplens info {shlex.quote(note.report)}"
        return (
            f"{text}\nWhat it recorded is in {note.report}.\nOnce the program has ended, this "
            f"finishes the report: {finishing}"
        )
    return text + (f"\nIts report: {note.report}" if note.report and os.path.isdir(note.report) else "")


def suspended(note: Note) -> bool:
    """Whether the launcher is stopped, e.g. by Ctrl-Z; False if it cannot be seen from here."""
    if pending.start_ticks(note.pid) != note.start_ticks:
        return False
    try:
        with open(f"/proc/{note.pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"T"]
    except OSError:
        return False


def described(entry: Entry, width: int = 60) -> str:
    """Return a session in a line."""
    command = shlex.join(entry.note.command)
    return (
        f"{entry.note.name} (process {entry.note.pid}): "
        f"{command if len(command) <= width else command[: width - 1] + '…'}"
    )


def _listing(alive: Sequence[Entry]) -> str:
    if not alive:
        return (
            "Start a program in one: warplens launch PROGRAM\nOr record it at once: warplens profile PROGRAM"
        )
    return "Running:\n" + "\n".join(f"  {described(entry)}" for entry in alive)


def exchange(entry: Entry, request: dict[str, Any], timeout: float | None) -> dict[str, Any]:
    """Send `request` to one session and return its answer, whatever that says.

    CaptureError if there is none in time.
    """
    note = entry.note
    end = None if timeout is None else time.monotonic() + timeout
    if suspended(note):  # what is sent now is answered when it wakes up; better say so now
        raise CaptureError(_asleep(entry))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(entry.address)
            if not same_user(connection):
                raise CaptureError(f"Session {note.name} belongs to another user now.")
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n") and len(answer) <= _MOST:
                with contextlib.suppress(TimeoutError):
                    part = connection.recv(1 << 16)
                    if not part:
                        raise CaptureError(f"Session {note.name} has ended.\nIts report: {note.report}")
                    answer += part
                    continue
                if suspended(note):
                    raise CaptureError(_asleep(entry))
                if end is not None and time.monotonic() > end:
                    raise CaptureError(
                        f"Session {note.name} (process {note.pid}) has not answered in {timeout:.0f} s."
                    )
        except OSError as error:
            raise CaptureError(
                f"Session {note.name} (process {note.pid}) cannot be reached: {error.strerror or error}."
            ) from error
    try:
        content = json.loads(answer)
        if isinstance(content, dict):
            return content
    except (ValueError, RecursionError):
        pass
    raise CaptureError(f"Session {note.name} sent an invalid answer.")


def _asleep(entry: Entry) -> str:
    return (
        f"Session {entry.note.name} is suspended: its launcher, process {entry.note.pid}, was "
        "stopped, e.g. by Ctrl-Z.\n"
        f"Continue it with `fg` in its terminal, or: kill -CONT {entry.note.pid}"
    )
