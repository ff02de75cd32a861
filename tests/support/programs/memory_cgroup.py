"""A memory cgroup for a test: what runs in it gets no more memory than that, as in a small container."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


class MemoryCgroup:
    """One cgroup; `wrap` a command to run it there."""

    def __init__(self, path: Path, peak: str, kills: str) -> None:
        self._path, self._peak, self._kills = path, peak, kills

    def wrap(self, *words: str | Path) -> list[str]:
        """Return the command that runs `words` in it."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self._path), *map(str, words)]

    @property
    def peak(self) -> int:
        """The most that was in use, bytes; page cache counts."""
        return int((self._path / self._peak).read_text())

    @property
    def pages(self) -> dict[str, int]:
        """Bytes of file pages (`cache`), and how many of them wait for the disk (`dirty`)."""
        numbers = dict(line.split() for line in (self._path / "memory.stat").read_text().splitlines())
        cache = int(numbers.get("cache", numbers.get("file", 0)))
        return {
            "cache": cache,
            "dirty": sum(
                int(numbers.get(name, 0)) for name in ("dirty", "file_dirty", "writeback", "file_writeback")
            ),
        }

    @property
    def kills(self) -> int:
        """How many processes the kernel ended in it."""
        lines = (self._path / self._kills).read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


@contextlib.contextmanager
def memory_cgroup(limit: int) -> Iterator[MemoryCgroup]:
    """Yield a cgroup of `limit` bytes, without swap. OSError where there can be none."""
    old = (_V1 / "memory.limit_in_bytes").exists()
    path = (_V1 if old else _V2) / f"warplens-test-{uuid.uuid4().hex[:8]}"
    path.mkdir()
    try:
        if old:
            made = MemoryCgroup(path, "memory.max_usage_in_bytes", "memory.oom_control")
            limits = {"memory.limit_in_bytes": limit, "memory.memsw.limit_in_bytes": limit}
        else:
            made = MemoryCgroup(path, "memory.peak", "memory.events")
            limits = {"memory.max": limit, "memory.swap.max": 0}
        for name, value in limits.items():
            if name != "memory.memsw.limit_in_bytes" or (path / name).exists():
                (path / name).write_text(str(value))
        yield made
    finally:
        _remove(path)


def why_not() -> str | None:
    """Say why there can be no memory cgroup here; None where there can."""
    if os.geteuid() != 0:
        return "making a memory cgroup needs root"
    try:
        with memory_cgroup(64 << 20):
            return None
    except OSError as error:
        return f"no memory cgroup can be made here: {error}"


def _remove(path: Path) -> None:
    """Remove it once the processes that ended in it are gone."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            path.rmdir()
            return
        time.sleep(0.05)
