"""`warplens.prepare()`: lets a later recording hear all NVTX calls of this process from now on."""

from __future__ import annotations

import os

from warplens.recording.agent.announce import AGENT, SPOOL, announce

_before: tuple[str, ...] | None = None


def prepare() -> tuple[str, ...]:
    """Announce the agent to NVTX; return the paths of the libraries that are loaded already.

    NVTX looks for a tool once per library, at the library's first NVTX call. Call this before CUDA, NCCL, PyPI `nvtx` and the
    like make theirs: at the top of the program is best. Nothing is recorded until `record` or `start`. Costs about a
    millisecond, and no imports. A tool that NVTX_INJECTION64_PATH names already stays and hears everything too. Children that
    are started later inherit the variable, which makes them load the agent but not record.
    """
    global _before
    if os.environ.get(SPOOL) or not os.path.exists(
        AGENT
    ):  # the launcher has done it; or nothing can be recorded here
        return loaded_libraries()
    announce(os.environ, AGENT, ("nvtx",))  # to CUDA a recording attaches at any time
    now = loaded_libraries()
    if _before is None:
        _before = now
    return now


def prepared() -> tuple[str, ...] | None:
    """Return the libraries that were loaded before the first `prepare`; None if there was none."""
    return _before


def loaded_libraries(maps: str = "/proc/self/maps") -> tuple[str, ...]:
    """Return the paths of the shared libraries of this process, and of its program, in order of address."""
    found: dict[str, None] = {}
    try:
        with open(maps, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.split(maxsplit=5)
                if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                    found[fields[5].rstrip("\n").removesuffix(" (deleted)")] = None
    except OSError:
        pass
    return tuple(found)
