"""However a program ends, what its GPU had done some time before is in the report."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.gpu.recording import record

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native", "torch"), pytest.mark.timeout(300)]

LAUNCHES = 2000
_WORK = f"""
import os, signal, sys, threading, time, torch
x = torch.zeros(1024, device="cuda")
for _ in range({LAUNCHES}): x.add_(1)
torch.cuda.synchronize()
"""
ENDS = {
    "returns": ("", 0, LAUNCHES),
    "sys.exit": ("sys.exit(3)", 3, LAUNCHES),
    "exception": ("raise RuntimeError('on purpose')", 1, LAUNCHES),
    "exit in a thread": ("threading.Thread(target=lambda: os._exit(5)).start(); time.sleep(5)", 5, 0),
    "os._exit": ("os._exit(4)", 4, 0),
    "later os._exit": ("time.sleep(1); os._exit(4)", 4, LAUNCHES),
    "later SIGTERM": ("time.sleep(1); os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM, LAUNCHES),
    "later SIGKILL": ("time.sleep(1); os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, LAUNCHES),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_report_has_the_work_done_before_the_end(tmp_path: Path, end: str) -> None:
    text, status, least = ENDS[end]
    recorded = record(_WORK + text + "\n", tmp_path, "-t", "cuda,nvtx", status=status)
    assert len(recorded.table("kernels")) >= least
