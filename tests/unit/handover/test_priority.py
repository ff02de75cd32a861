"""A thread that came last is back when its process is needed, even where it holds the lock of its interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warplens.handover.priority import all_come_back, come_back

HOLDS_THE_LOCK = """
import threading
from warplens.handover.priority import come_last
def work():
    come_last()
    print("last", flush=True)
    sum(1 for number in iter(int, 1))
threading.Thread(target=work, daemon=True).start()
threading.Event().wait()
"""


def _policies(process: int) -> set[tuple[int, int]]:
    """Return policy and niceness of the threads of a process."""
    threads = [int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()]
    return {(os.sched_getscheduler(one), os.getpriority(os.PRIO_PROCESS, one)) for one in threads}


@pytest.mark.skipif(os.geteuid() != 0, reason="the system lets nobody else take such priorities back")
def test_all_threads_of_a_process_come_back() -> None:
    words = [sys.executable, "-c", HOLDS_THE_LOCK]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "last\n"
        ours = (os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0))
        assert _policies(process.pid) == {ours, (os.SCHED_IDLE, 19)}
        all_come_back(process.pid)
        assert _policies(process.pid) == {ours}
        process.kill()
    all_come_back(process.pid)  # it is gone: nothing happens


def test_a_thread_that_is_gone_does_not_come_back() -> None:
    assert not come_back(1 << 22)
