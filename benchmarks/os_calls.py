"""Cost of recording calls of the C library, beside the same calls without wrappers, in one process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from _spool import recording  # noqa: F401  # makes warplens importable
from c_api import _build
from harness import Row
from warplens.recording.agent.library import CaptureSettings, CpuSettings, load_agent

HERE = Path(__file__).resolve().parent
OS_CALLS, FILE_ACCESS = 8, 16
NAMES = {
    "mutex": "pthread_mutex_lock + unlock, one thread",
    "mutex_threads": "pthread_mutex_lock + unlock, free, of several threads",
    "semaphore": "sem_post + sem_wait",
    "read": "read of 1 byte of /dev/zero",
    "write": "write of 1 byte to /dev/null",
    "poll": "poll of a pipe that is ready",
}
# ns a call, or pair, may cost more than without us; calls are shorter than the threshold, so that nothing is written.
BUDGETS = {"mutex_threads": 5.0, "read": 45.0, "write": 45.0, "poll": 45.0}
NEVER_NS = 10**9


def run(quick: bool) -> list[Row]:
    """Build the C program and run it in several rounds: with nothing long enough to be recorded, and with every call recorded."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        program = _build("os_calls.c", HERE, folder)
        rounds = 3 if quick else 7
        below = [_measure(program, folder / f"below{number}", OS_CALLS, NEVER_NS) for number in range(rounds)]
        every = [_measure(program, folder / f"every{number}", OS_CALLS, 0) for number in range(rounds)]
    rows = []
    for key, what in NAMES.items():
        rows.append(
            _row(below, key, "cost", f"{what}: more with wrappers, below the threshold", BUDGETS.get(key))
        )
        rows.append(_row(below, key, "noise", f"{what}: the same call twice (A/A)", None))
        rows.append(_row(every, key, "cost", f"{what}: more, every call recorded", None))
    return rows


def _measure(program: Path, spool: Path, flags: int, threshold_ns: int) -> dict[str, dict[str, float]]:
    agent = load_agent()
    spool.mkdir()
    (spool / "processes.log").touch()
    early = agent.clock_sample()
    time.sleep(0.05)
    cpu = CpuSettings(flags=flags, os_threshold_ns=threshold_ns, os_backtrace_ns=NEVER_NS)
    agent.create_control(spool / "control", early, CaptureSettings(cpu=cpu))
    variables = {
        "LD_PRELOAD": str(agent.path.with_name("libwarplens_preload_cpu.so")),
        "WARPLENS_SPOOL": str(spool),
    }
    done = subprocess.run(
        [program], env=os.environ | variables, check=True, stdout=subprocess.PIPE, text=True
    )
    for file in spool.iterdir():
        file.unlink()
    measured: dict[str, dict[str, float]] = json.loads(done.stdout)
    if not measured.pop("wrapped"):
        raise RuntimeError("the larger stub is not in the program: run make native")
    return measured


def _row(
    rounds: list[dict[str, dict[str, float]]], key: str, figure: str, what: str, budget: float | None
) -> Row:
    values = [measured[key][figure] for measured in rounds]
    return Row(
        what=what,
        value=statistics.median(values),
        unit="ns",
        peer="the call without them",
        peer_value=statistics.median(measured[key]["bare"] for measured in rounds),
        budget=budget,
        budget_on="value",
        note=f"middle of {len(rounds)} processes, {min(values):.1f} to {max(values):.1f}",
    )
