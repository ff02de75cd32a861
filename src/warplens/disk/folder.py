"""An open directory: creates, replaces and removes files by its descriptor.

So a renamed or swapped path cannot redirect it.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

PRIVATE = 0o600  # a report holds command lines, and the user can grant access to it
PRIVATE_FOLDER = 0o700
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_numbers = itertools.count()


class Folder:
    """An open directory. Raises OSError, with the whole path in it.

    Names may lead down, as in `tables/kernels/x.parquet`; each folder on the way has to be one itself: a link is refused.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False, follow: bool = True) -> None:
        """Open a directory; `create` makes it, for this user alone.

        `follow`: the name itself may be a link, as a user may have one.
        """
        self.path = Path(path)
        if create:
            self.path.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        self.descriptor = os.open(self.path, _DIRECTORY | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))

    @classmethod
    def of(cls, path: str | os.PathLike[str], descriptor: int) -> Folder:
        """Return the directory that `descriptor` has open; `path` is its name for people."""
        folder = cls.__new__(cls)
        folder.path, folder.descriptor = Path(path), descriptor
        return folder

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def names(self, below: str = "") -> list[str]:
        """Return what is in it, or in a folder of it, by name.

        Nothing if that folder is not there.
        """
        try:
            with self._opened(below.split("/") if below else [], below) as descriptor:
                return sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor has no path
        except FileNotFoundError:
            return []

    def status(self, name: str) -> os.stat_result | None:
        """Return what `lstat` says of an entry; None if there is none."""
        with suppress(FileNotFoundError), self._at(name) as (above, last):
            return os.stat(last, dir_fd=above, follow_symlinks=False)
        return None

    def create(self, name: str, *, mode: int = PRIVATE, again: bool = False, buffer: int = -1) -> BinaryIO:
        """Make a file and the folders that it lies in, open for writing and reading.

        FileExistsError where it is there; `again` removes it then: it is what an earlier try left.
        """
        with self._at(name, create=True) as (above, last):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE
            try:
                descriptor = os.open(last, flags, mode, dir_fd=above)
            except FileExistsError:
                if not again:
                    raise
                os.unlink(last, dir_fd=above)
                descriptor = os.open(last, flags, mode, dir_fd=above)
            return os.fdopen(descriptor, "w+b", buffer)

    def update(self, name: str, *, create: bool = False, append: bool = False) -> BinaryIO:
        """Open a regular file that is there (`create`: or make it), for writing into it as it is."""
        flags = os.O_RDWR | (os.O_CREAT if create else 0) | (os.O_APPEND if append else 0)
        with self._at(name) as (above, last):
            descriptor = os.open(last, flags | _SAFE, PRIVATE, dir_fd=above)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise OSError(errno.EINVAL, "it is not a regular file", last)
            return os.fdopen(descriptor, "r+b", buffering=0) if append else os.fdopen(descriptor, "r+b")

    def write(self, name: str, data: bytes | str, *, sync: bool = False) -> None:
        """Put a file in the place of what has that name, in one step, when it is whole.

        `sync`: and on the disk.
        """
        temporary = f"{name}.tmp{os.getpid()}-{next(_numbers)}"
        try:
            with self.create(temporary, again=True) as file:
                file.write(data.encode() if isinstance(data, str) else data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            self.rename(temporary, name)
        except BaseException:
            with suppress(OSError):
                self.remove(temporary)
            raise

    def rename(self, old: str, new: str, to: Folder | None = None) -> None:
        """Give an entry another name, here or in the folder `to`.

        What has that name is replaced; a folder only where it is empty.
        """
        with self._at(old) as (source, last), (to or self)._at(new, create=True) as (target, name):
            os.rename(last, name, src_dir_fd=source, dst_dir_fd=target)

    def create_whole(self, name: str, data: bytes) -> None:
        """Make a file that is complete from the first moment: a killed writer leaves no empty one.

        FileExistsError.
        """
        temporary = f"{name}.tmp{os.getpid()}-{next(_numbers)}"
        try:
            with self.create(temporary, again=True) as file:
                file.write(data)
            try:
                with self._at(temporary) as (source, last), self._at(name) as (target, new):
                    os.link(last, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                with self.create(name) as file:
                    file.write(data)
        finally:
            self.remove(temporary)

    def move(self, name: str, to: Folder, new: str) -> None:
        """Move a regular file, also to another file system.

        Wherever that is interrupted, the file is whole in one place.
        """
        if not stat.S_ISREG(self._mode(name)):
            raise OSError(errno.EINVAL, "it is not a regular file", os.path.join(self.path, name))
        try:
            self.rename(name, new, to)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self.copy(name, to, new)
            self.remove(name)

    def copy(self, name: str, to: Folder, new: str) -> None:
        """Copy a regular file; it has its new name when it is whole."""
        temporary = f"{new}.tmp{os.getpid()}-{next(_numbers)}"
        try:
            with self.read(name) as source, to.create(temporary, again=True) as target:
                while block := source.read(1 << 20):
                    target.write(block)
            to.rename(temporary, new)
        except BaseException:
            with suppress(OSError):
                to.remove(temporary)
            raise

    def read(self, name: str) -> BinaryIO:
        """Open a regular file for reading."""
        with self._at(name) as (above, last):
            descriptor = os.open(last, os.O_RDONLY | _SAFE, dir_fd=above)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise OSError(errno.EINVAL, "it is not a regular file", last)
            return os.fdopen(descriptor, "rb")

    def remove(self, name: str) -> None:
        """Remove an entry that is no folder; a link itself, never what it leads to.

        One that is not there is fine.
        """
        with suppress(FileNotFoundError), self._at(name) as (above, last):
            os.unlink(last, dir_fd=above)

    def remove_folder(self, name: str) -> bool:
        """Remove a folder that is empty; say whether it is gone."""
        try:
            with self._at(name) as (above, last):
                os.rmdir(last, dir_fd=above)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def remove_tree(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        with self.folder(name) as inside:
            for entry in inside.names():
                if stat.S_ISDIR(inside._mode(entry)):
                    inside.remove_tree(entry)
                else:
                    inside.remove(entry)
        with self._at(name) as (above, last):
            os.rmdir(last, dir_fd=above)

    def folder(self, name: str, *, create: bool = False) -> Folder:
        """Open a folder of it, which is not a link; `create` makes it."""
        with self._opened(name.split("/"), name, create) as descriptor:
            return Folder.of(self.path / name, os.dup(descriptor))

    def _mode(self, name: str) -> int:
        status = self.status(name)
        return 0 if status is None else status.st_mode

    @contextmanager
    def _at(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of the folder that an entry lies in, and the entry's own name."""
        *above, last = name.split("/")
        if last in ("", ".", ".."):
            raise ValueError(f"{name!r} names no entry of {self.path}")
        with self._opened(above, name, create) as descriptor:
            yield descriptor, last

    @contextmanager
    def _opened(self, parts: list[str], name: str, create: bool = False) -> Iterator[int]:
        descriptor, opened = self.descriptor, []
        try:
            for part in parts:
                if part in ("", ".", ".."):
                    raise ValueError(f"{name!r} leads out of {self.path}")
                try:
                    descriptor = _down(part, descriptor)
                except FileNotFoundError:
                    if not create:
                        raise
                    with suppress(FileExistsError):
                        os.mkdir(part, PRIVATE_FOLDER, dir_fd=descriptor)
                    descriptor = _down(part, descriptor)
                opened.append(descriptor)
            yield descriptor
        except OSError as error:
            if isinstance(error.filename, str) and not error.filename.startswith("/"):
                error.filename = os.path.join(self.path, name)
            raise
        finally:
            for each in opened:
                os.close(each)


def _down(part: str, above: int) -> int:
    try:
        return os.open(part, _DIRECTORY | getattr(os, "O_NOFOLLOW", 0), dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP) and stat.S_ISLNK(
            os.stat(part, dir_fd=above, follow_symlinks=False).st_mode
        ):
            raise NotADirectoryError(errno.ENOTDIR, "a folder on the way is a link", part) from error
        raise
