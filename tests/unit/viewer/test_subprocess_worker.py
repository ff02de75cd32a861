"""What answers in a process of its own ends with the server, however that ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warplens.viewer.server import subprocess_worker

PATIENCE = 60.0
# A server that asks what takes long, says who works on it, and is killed.
SERVER = """
import json, os, subprocess, sys, time
words = '''
import time
from warplens.viewer.server import subprocess_worker
subprocess_worker._answer = lambda question: print("at it", flush=True) or time.sleep(600)
subprocess_worker.main()
'''
child = subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
child.stdin.write(json.dumps({"server": os.getpid(), "reports": [], "method": "findings", "arguments": []}).encode())
child.stdin.close()
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in (
            "Z",
            "X",
        )
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for a process in /proc")
def test_workers_end_with_a_killed_server() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        child = int(server.stdout.readline())
        try:
            assert _is_there(child)
            server.kill()
            end = time.monotonic() + PATIENCE
            while _is_there(child) and time.monotonic() < end:
                time.sleep(0.05)
            assert not _is_there(child)
        finally:
            if _is_there(child):
                os.kill(child, signal.SIGKILL)


def test_an_unknown_method_is_not_answered() -> None:
    question = json.dumps({"server": os.getpid(), "reports": [], "method": "close", "arguments": []})
    done = subprocess.run(
        [sys.executable, "-m", subprocess_worker.__name__], input=question, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
