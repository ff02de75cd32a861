"""What a process does to come after others: those that finish, snapshot or compute beside a program or a page that somebody waits for."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def step_back(niceness: int, *, batch: bool = False, first_to_go: bool = False) -> None:
    """Take less of the processors, by so many steps of `nice`; where the system has no such thing, nothing happens.

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
