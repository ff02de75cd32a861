"""Measures the available memory: of the machine, of our container, and within this process's limit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_UNKNOWN = 8 << 30  # bytes, where the system says nothing
_WANTED = 128 << 20  # bytes that work on large data takes where there is enough
_LEAST = 16 << 20  # less than that is no use: the libraries take as much for themselves
_sharers = [1]  # processes that work at the same time, each with its share
_GROUPS = Path("/sys/fs/cgroup")
_FILES = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)  # cgroup v2, v1


def total() -> int:
    """Return the bytes of memory that this process could have if it were alone."""
    return min([_machine(), *(most for most, _ in _limits()), *_own()])


def available() -> int:
    """Return the bytes of memory that are free now, what the system can give up at once included."""
    shared = min([_free(), *(most - used for most, used in _limits())]) // _sharers[0]
    return max(0, min([shared, *(most - _mapped() for most in _own())]))


def share(processes: int) -> None:
    """Make this process one of several that divide the free memory of the machine."""
    _sharers[0] = max(processes, 1)


def budget(wanted: int = _WANTED) -> int:
    """Return the bytes that large work may allocate.

    At most `wanted`, and at most half of the free memory.
    """
    return max(min(wanted, available() // 2), _LEAST)


def _machine() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN


def _free() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return _machine()


def _limits(groups: Path = _GROUPS, own: Path = Path("/proc/self/cgroup")) -> Iterator[tuple[int, int]]:
    """Yield the limit and the use of each control group that this process is in.

    Pages of files that can go do not count as used.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            root = groups / "memory" if kinds else groups
            folder = root / path.lstrip("/")
            # Within a container, the path may be that of the host: the root is then the container's own group.
            for group in dict.fromkeys(
                (*(one for one in (folder, *folder.parents) if one.is_relative_to(root)), root)
            ):
                yield from _limit(group)


def _limit(group: Path) -> Iterator[tuple[int, int]]:
    for most, used in _FILES:
        with contextlib.suppress(OSError, ValueError):
            limit = int((group / most).read_text(encoding="ascii"))  # "max": none
            words = (group / "memory.stat").read_text(encoding="ascii").split()
            freed = int(words[words.index("inactive_file") + 1]) if "inactive_file" in words else 0
            yield limit, max(0, int((group / used).read_text(encoding="ascii")) - freed)


def _mapped() -> int:
    """Return the bytes of address space that this process has."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    return 0


def _own() -> list[int]:
    """Return the limit of this process's address space, where there is one."""
    try:
        import resource
    except ImportError:  # not on Windows
        return []
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if soft == resource.RLIM_INFINITY else [soft]
