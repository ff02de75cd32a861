"""The private directory of a user that lists the running sessions.

The names are predictable, so that another terminal finds them, and anybody may have taken them before: what counts is what
lies there. A directory is opened once, without following a link, its owner and mode are asked of the open descriptor, and all
further steps go through that descriptor.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from warplens.disk.folder import Folder
from warplens.errors import CaptureError
from warplens.handover import links

OVERRIDE = "WARPLENS_RUNTIME_DIR"
_PATIENCE_S = 2.0


@dataclass(slots=True)
class RuntimeDir:
    """An open directory that is ours alone; `path` is its name for people."""

    path: str
    descriptor: int

    @property
    def folder(self) -> Folder:
        """The directory as an open folder."""
        return Folder.of(self.path, self.descriptor)

    def address(self, name: str) -> str:
        """Return a path of the entry `name` that is short enough for a socket (107 bytes).

        The directory's own path may be longer.
        """
        short = f"/proc/self/fd/{self.descriptor}"
        return f"{short}/{name}" if os.path.isdir(short) else os.path.join(self.path, name)

    def in_place(self) -> bool:
        """Whether the directory still has its name, and is still nobody else's."""
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.descriptor)) and is_private(
                self.descriptor
            )
        except OSError:
            return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from adding and removing sessions in the meantime.

        Not for ever, should one of them be suspended in the middle.
        """
        with _descriptor(f"/proc/self/fd/{self.descriptor}", self.path) as own:
            end = time.monotonic() + _PATIENCE_S
            while True:
                try:
                    fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        break
                    time.sleep(0.01)
            yield

    def close(self) -> None:
        """Close the descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def runtime_dir(environment: Mapping[str, str] | None = None) -> RuntimeDir:
    """Open the directory for sessions that begin now, and create it if there is none.

    CaptureError if none can be had.
    """
    environ = os.environ if environment is None else environment
    failures = []
    for path, parent_is_ours in _candidates(environ):
        try:
            if parent_is_ours and not _is_ours(os.path.dirname(path)):
                continue
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                pass
            if (found := _opened(path)) is not None:
                return found
            failures.append(f"  {path}: another user owns it, or others may read or write it")
        except OSError as error:
            failures.append(f"  {path}: {error.strerror}")
        if (
            not parent_is_ours and OVERRIDE not in environ
        ):  # the name was taken: any other will do, `_nearby` finds it
            for other in _nearby(path):
                if (found := _opened(other)) is not None:
                    return found
            if (found := _made_beside(path)) is not None:
                return found
    raise CaptureError(
        "No directory for the session, which other commands need to find it:\n"
        + "\n".join(failures)
        + f"\nSet a directory of yours with {OVERRIDE}."
    )


def runtime_dirs(environment: Mapping[str, str] | None = None) -> list[RuntimeDir]:
    """Open all directories that may hold the user's sessions, for any environment of their launchers."""
    environ = os.environ if environment is None else environment
    found: list[RuntimeDir] = []
    for path, parent_is_ours in _candidates(environ):
        alternatives = [] if parent_is_ours or OVERRIDE in environ else _nearby(path)
        for name in (path, *alternatives):
            opened = _opened(name)
            if opened is None:
                continue
            if any(
                os.path.samestat(os.fstat(opened.descriptor), os.fstat(other.descriptor)) for other in found
            ):
                opened.close()
            else:
                found.append(opened)
    return found


def is_private(descriptor: int) -> bool:
    """Whether the directory behind `descriptor` is ours, and nobody else may do anything in it."""
    return links.is_ours_alone(os.fstat(descriptor))


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, bool]]:
    """Paths, best first, and whether their parent has to be ours too."""
    if named := environ.get(OVERRIDE):
        return [(os.path.abspath(named), False)]
    user = os.geteuid()
    ours = (environ.get("XDG_RUNTIME_DIR"), f"/run/user/{user}")
    shared = ("/tmp", environ.get("TMPDIR"))  # $TMPDIR last: terminals differ in it
    places = [(os.path.join(parent, "warplens"), True) for parent in ours if parent and os.path.isabs(parent)]
    places += [
        (os.path.join(parent, f"warplens-{user}"), False)
        for parent in shared
        if parent and os.path.isabs(parent)
    ]
    return list(dict.fromkeys(places))


def _nearby(path: str) -> list[str]:
    prefix = os.path.basename(path) + "-"
    try:
        with os.scandir(os.path.dirname(path)) as entries:
            return sorted(entry.path for entry in entries if entry.name.startswith(prefix))
    except OSError:
        return []


def _made_beside(path: str) -> RuntimeDir | None:
    import tempfile  # rarely needed, and slow to load

    try:
        return _opened(tempfile.mkdtemp(prefix=os.path.basename(path) + "-", dir=os.path.dirname(path)))
    except OSError:
        return None


def _is_ours(path: str) -> bool:
    """Whether no other user can write into the directory `path`.

    With `sudo -E`, $XDG_RUNTIME_DIR is another user's.
    """
    status = os.stat(path)
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o022


def _opened(path: str) -> RuntimeDir | None:
    """Open `path` if it is a directory of ours; None otherwise. A link to one is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if is_private(descriptor):
        return RuntimeDir(path, descriptor)
    os.close(descriptor)
    return None


@contextmanager
def _descriptor(*paths: str) -> Iterator[int]:
    """Open the directory a second time: locks of one descriptor do not exclude each other."""
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        break
    else:
        raise FileNotFoundError(2, "the directory is gone", paths[-1])
    try:
        yield descriptor
    finally:
        os.close(descriptor)
