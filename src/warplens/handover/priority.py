"""Lowers the priority of background processes.

Those finish, snapshot or compute beside a program or a page that the user waits for.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

_IO_IDLE = 3 << 13
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}


def come_last() -> None:
    """Give the calling thread only idle time of the processors and of the disk.

    Other threads keep theirs.
    """
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(19)
    if hasattr(os, "sched_setscheduler"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    number = _IOPRIO_SET.get(os.uname().machine) if hasattr(os, "uname") else None
    if number is not None and sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).syscall(number, 1, 0, _IO_IDLE)


def come_back(thread: int) -> bool:
    """Undo `come_last` for a thread, by its id in the system: it gets the priority of the calling one.

    Return whether the system let this user do it; where not, the thread gets idle time as before.
    """
    try:
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, 0))
    except (AttributeError, OSError):
        return False
    return True


def all_come_back(process: int) -> None:
    """Undo `come_last` for all threads of a process.

    One that starves may hold the lock of its interpreter, so that no other thread there could do it.
    """
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            come_back(int(thread))


def step_back(niceness: int, *, batch: bool = False, first_to_go: bool = False) -> None:
    """Lower the CPU priority by `niceness` steps; does nothing on a system without it.

    `batch`: wake up after others, too; `first_to_go`: be what the system ends where memory gets short.
    """
    if batch and hasattr(os, "sched_setscheduler"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(niceness)
    if first_to_go:
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
