"""Recordings that are not finished yet: their notes, their writers, and the lock for finishing.

A launcher leaves the note in the report.

Standard library only: the launcher's command loads this before the program runs.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from warplens.disk.folder import Folder
from warplens.errors import ReportError
from warplens.handover import links, seals, untrusted
from warplens.handover.naming import MANIFESTS, PENDING, TOKEN
from warplens.handover.wording import COMMAND_LINE, Wording

if sys.platform != "win32":
    import fcntl

DIRECTORY = PENDING
_SILENCE_S = 120
_LONGEST = 1 << 20  # bytes of a note
_LONGEST_MANIFEST = 1 << 26
_LONGEST_LOG = 1 << 30


@dataclass(frozen=True)
class Pending:
    """One recording that is not finished: where its spool lies and which process runs it."""

    id: str
    spool: str
    host: str
    boot_id: str
    pid: int
    start_ticks: int
    job: str | None = None
    keep_raw: bool = False
    ended: bool = False
    token: str = ""  # what the spool holds as well, see `belongs`
    own: bool = field(
        default=True, compare=False
    )  # this user wrote the note: nobody who sends a report can say so
    path: Path = field(default=Path(), compare=False)

    @property
    def report(self) -> Path:
        """The report directory this recording will be part of."""
        return self.path.parent.parent


def own_id() -> str:
    """Return the name of the part that the calling process records, if it records but one."""
    return part_id(socket.gethostname(), os.getpid(), start_ticks(os.getpid()))


def begin(
    report: str | os.PathLike[str],
    spool: str | os.PathLike[str],
    *,
    job: str | None = None,
    keep_raw: bool = False,
    name: str | None = None,
    wording: Wording = COMMAND_LINE,
) -> Pending:
    """Note that the calling process records into `spool` for the part `name` of `report`.

    Creates both directories. Raises ReportError.
    """
    pid = os.getpid()
    name = own_id() if name is None else name
    path = Path(os.path.abspath(report)) / DIRECTORY / f"{name}.json"
    pending = Pending(
        name,
        os.path.abspath(spool),
        socket.gethostname(),
        boot_id=boot_id(),
        pid=pid,
        start_ticks=start_ticks(pid),
        job=job,
        keep_raw=keep_raw,
        path=path,
    )
    try:
        Folder(pending.spool, create=True).close()
        pending = _mark(pending)
        _write(pending)
    except OSError as error:
        raise ReportError(
            f"cannot write the report {report}: {error.strerror} ({error.filename or path}); choose another place with {wording.output}"
        ) from error
    return pending


def adopt(
    report: str | os.PathLike[str], spool: str | os.PathLike[str], name: str, *, job: str | None = None
) -> Pending:
    """Note that `spool`, which nobody runs any more, is to become the part `name` of `report`."""
    path = Path(os.path.abspath(report)) / DIRECTORY / f"{name}.json"
    pending = Pending(
        name,
        os.path.abspath(spool),
        socket.gethostname(),
        boot_id=boot_id(),
        pid=0,
        start_ticks=0,
        job=job,
        path=path,
    )
    with suppress(
        OSError
    ):  # a spool that nobody may write to is converted all the same, by this command only
        pending = _mark(pending)
    _write(pending)
    return pending


def belongs(pending: Pending) -> bool:
    """Say whether the spool of a recording belongs to the report.

    It is inside, or both got the same token at the start.

    The sender of a report may have written the name of any directory into its note.
    """
    spool = Path(pending.spool)
    if spool.parent == pending.report / "spool":
        return _is_inside(spool)
    try:
        text = untrusted.read(spool / TOKEN, 100).decode("ascii", "replace").strip()
        return bool(pending.token) and text == pending.token and os.lstat(spool).st_uid == os.geteuid()
    except OSError:
        return False


def _notes(folder: Path) -> list[Path]:
    """Return the note files in a folder.

    The folder may vanish in the meantime, when another process finishes the last of them.
    """
    try:
        return sorted(folder.glob("*.json"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def listed(report: str | os.PathLike[str]) -> list[Pending]:
    """Return the unfinished recordings of a report, oldest name first.

    Unreadable notes are left alone.
    """
    folder = Path(os.path.abspath(report)) / DIRECTORY
    notes = []
    for path in _notes(folder):
        pending = read(path)
        if pending is not None:
            notes.append(pending)
    return notes


def read(path: Path) -> Pending | None:
    """Read one note; None if it is gone or no note."""
    try:
        data = json.loads(untrusted.read(path, _LONGEST))
        name = path.stem
        if data["id"] != name or safe(name) != name:  # the id names files: it must not lead out of the report
            return None
        beside = path.parent.parent / "spool" / name
        if not _may_be(str(data["spool"])):
            return None
        return Pending(
            id=name,
            # A report that was moved, or copied to another machine, takes the spool that lies in it along.
            spool=str(beside if _is_inside(beside) else data["spool"]),
            host=str(data["host"]),
            boot_id=str(data["boot_id"]),
            pid=int(data["pid"]),
            start_ticks=int(data["start_ticks"]),
            job=None if data.get("job") is None else str(data["job"]),
            keep_raw=bool(data.get("keep_raw", False)),
            ended=bool(data.get("ended", False)),
            token=str(data.get("token", "")),
            own=seals.is_own(data),
            path=path,
        )
    except (OSError, ValueError, OverflowError, KeyError, TypeError, RecursionError):
        return None


def runner(pending: Pending) -> str | None:
    """Say who still records: the launcher, or a traced process that outlives it.

    None when nobody does.
    """
    if pending.ended:
        return None
    if pending.host != socket.gethostname():
        # Its processes cannot be seen from here, but its launcher reads the clocks every second.
        age = time.time() - _last_reading(Path(pending.spool))
        return f"host {pending.host}" if age < _SILENCE_S else None
    if pending.boot_id != boot_id():
        return None
    if pending.pid and start_ticks(pending.pid) == pending.start_ticks:
        return f"process {pending.pid}"
    writer = next(filter(None, map(living_writer, Path(pending.spool).glob("*.spool"))), None)
    return None if writer is None else f"process {writer}"


def end(pending: Pending) -> int | None:
    """Note that the recording is over although its processes run on.

    Returns a descriptor that holds the right to finish it.

    The right goes with the descriptor, also to a child that inherits it. None if the note cannot be written or locked.
    """
    temporary = f"{DIRECTORY}/{pending.id}.tmp{os.getpid()}"
    descriptor = None
    try:
        with Folder(pending.report, create=True) as report:  # somebody may have deleted it in the meantime
            try:
                with report.create(temporary, again=True) as file:
                    file.write(_text(replace(pending, ended=True)).encode())
                    file.flush()
                    descriptor = os.dup(file.fileno())
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # before it has its name: nobody can be faster
                report.rename(temporary, f"{DIRECTORY}/{pending.path.name}")
            except OSError:
                report.remove(temporary)
                raise
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


@contextmanager
def locked(pending: Pending) -> Iterator[bool]:
    """Hold the right to finish; waits for another command that does.

    Yields False when the note is gone: it is finished.
    """
    handle = _locked_note(pending.path)
    if handle is None:
        yield False
    else:
        with handle:  # closing it drops the lock
            yield True


def jobs(report: str | os.PathLike[str]) -> set[str | None]:
    """Return the job ids of a report's parts and pending recordings.

    Empty when there is not a report.
    """
    ids: set[str | None] = {pending.job for pending in listed(report)}
    folder = Path(report) / MANIFESTS
    for path in _notes(folder):
        try:
            job = json.loads(untrusted.read(path, _LONGEST_MANIFEST)).get("job")
        except (OSError, ValueError, AttributeError, RecursionError):
            continue
        ids.add(None if job is None else str(job))
    return ids


def running(report: str | os.PathLike[str]) -> list[Pending]:
    """Return the recordings of a report that somebody still writes."""
    return [pending for pending in listed(report) if runner(pending) is not None]


def start_ticks(pid: int) -> int:
    """Return the start time of a process (field 22 of its stat file).

    0 if there is none, or a zombie.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    fields = text.rpartition(b")")[2].split()
    return 0 if len(fields) < 20 or fields[0] in (b"Z", b"X") else int(fields[19])


def boot_id() -> str:
    """Return the kernel's id of this boot, or the host name if there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def part_id(host: str, pid: int, ticks: int) -> str:
    """Return the name of a part: `<host>-<pid>-<start>`, safe as a file name."""
    return f"{safe(host)}-{pid}-{ticks}"


def writer_of(spool: Path) -> tuple[int, int] | None:
    """Return process id and start time of a spool file's writer, from its name.

    None if it has none.
    """
    match = re.fullmatch(r".*-(\d{1,9})-(\d{1,19})", spool.stem)
    return (int(match[1]), int(match[2])) if match else None


def living_writer(spool: Path) -> int | None:
    """Return the process id of a spool file's writer, while that process lives."""
    writer = writer_of(spool)
    return writer[0] if writer and writer[1] and start_ticks(writer[0]) == writer[1] else None


def safe(name: str) -> str:
    """Return `name` with everything but letters, digits, dot, dash and underscore replaced."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".") or "host"


def _locked_note(path: Path) -> BinaryIO | None:
    """Return the note, open and locked; None if it is gone."""
    while True:
        handle = None
        try:
            handle = open(path, "rb")  # noqa: SIM115 - the caller closes it
            if sys.platform != "win32":
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle.fileno()), path.stat()):
                return handle
            handle.close()  # `end` has put another in its place in the meantime: that one is locked
        except OSError:
            if handle is not None:
                handle.close()
            return None
        except BaseException:
            if handle is not None:
                handle.close()
            raise


def _last_reading(spool: Path) -> float:
    """Return when the clock log was last written, s since 1970.

    Now if there is none, because that proves nothing.
    """
    try:
        lines = untrusted.read(spool / "clocks.jsonl", _LONGEST_LOG).splitlines()
    except OSError:
        return time.time()
    for line in reversed(lines[-3:]):
        try:
            return float(json.loads(line)["realtime"]) / 1e9
        except (ValueError, KeyError, TypeError):
            continue
    return time.time()


def _may_be(path: str) -> bool:
    """Whether there can be a file of that name."""
    try:
        Path(path).stat()
    except OSError as error:
        return error.errno not in (errno.ENAMETOOLONG, errno.ELOOP)
    except ValueError:  # a NUL, or half a character
        return False
    return True


def _is_inside(spool: Path) -> bool:
    """Say whether the spool lies in the report that its path names: no link leads out of it."""
    return links.is_folder(spool.parent) and links.is_folder(spool)


def _mark(pending: Pending) -> Pending:
    """Write a new token into the spool, and return the recording with it. Raises OSError."""
    token = os.urandom(16).hex()
    with Folder(pending.spool) as spool:
        spool.write(TOKEN, token + "\n")
    return replace(pending, token=token)


def _text(pending: Pending) -> str:
    return (
        json.dumps(
            seals.sealed(
                {name: value for name, value in asdict(pending).items() if name not in ("path", "own")}
            )
        )
        + "\n"
    )


def _write(pending: Pending) -> None:
    with Folder(pending.report, create=True) as report:
        report.write(f"{DIRECTORY}/{pending.path.name}", _text(pending))
