"""Cost of native sampling, beside `perf record -g` and `--call-graph dwarf` at the same rate.

Perf events are switched off and on every 200 ms while the program does equal steps: ours by the program itself (it began them), those
of perf by its control pipe. The time that a step waited for a CPU is subtracted. A/A: the same with no events to switch.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from _sampled_work import TOGGLE_NS
from _steps import Steps, parted, standard_error, trimmed
from harness import Row
from tests.support.programs.capturing import Capture
from tests.support.programs.python_running import CPU_STUB
from tests.support.reports.spool_records import read_spools
from warplens.recording.agent.library import CpuSettings
from warplens.recording.options.cpu_settings import NATIVE_SAMPLES

WORK = Path(__file__).with_name("_sampled_work.py")
HZ = 250
AUTO = 1  # Backtrace
NATIVE = 2  # SampleKind
PEERS = {"perf record -g": ("-g",), "perf record --call-graph dwarf,8192": ("--call-graph", "dwarf,8192")}
LABELS = {"py": "pure Python", "np": "NumPy"}


def run(quick: bool) -> list[Row]:
    """Measure it all; `quick`: shorter, for a look."""
    seconds = 6.0 if quick else 40.0
    rows = []
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        for kind, label in LABELS.items():
            steps, _ = _ours(folder, kind, seconds, sampled=False)
            rows.append(_row(f"A/A, {label}: more time", *_by_state(steps)))
            steps, costs = _ours(folder, kind, seconds, sampled=True)
            rows.append(_row(f"{label}: more time, stacks by warplens at {HZ} Hz", *_by_state(steps)))
            rows += [Row(f"{label}: {what}", value, unit, note=note) for what, value, unit, note in costs]
            for peer, words in PEERS.items() if shutil.which("perf") else ():
                rows.append(
                    _row(f"{label}: more time, {peer} at {HZ} Hz", *_perf(folder, kind, seconds, words))
                )
    return rows


def _row(what: str, with_us: Sequence[float], without: Sequence[float]) -> Row:
    if min(len(with_us), len(without)) < 50:
        return Row(what, 0.0, "%", note="too few steps")
    percent = 100 * (trimmed(with_us) / trimmed(without) - 1)
    note = f"± {standard_error(with_us, without):.2f} (standard error), {len(with_us)} steps with, {len(without)} without"
    return Row(what, percent, "%", note=note)


def _read(out: Path) -> Steps:
    return list(struct.iter_unpack("<5q", out.read_bytes())) if out.exists() else []


def _by_state(steps: Steps) -> tuple[list[float], list[float]]:
    times: dict[int, list[float]] = {1: [], 0: [], -1: []}
    for start, end, _, delay, state in steps:
        times[state].append(float(end - start - delay))
    return times[1], times[0]


def _ours(
    folder: Path, kind: str, seconds: float, *, sampled: bool
) -> tuple[Steps, list[tuple[str, float, str, str]]]:
    spool, out = Path(tempfile.mkdtemp(dir=folder)), folder / "steps"
    capture = Capture(
        spool,
        cpu=CpuSettings(flags=NATIVE_SAMPLES if sampled else 0, native_hz=HZ, backtrace=AUTO),
        open=True,
    )
    (spool / "processes.log").touch()
    environment = {**os.environ, "LD_PRELOAD": str(CPU_STUB), "WARPLENS_SPOOL": str(spool)}
    process = subprocess.Popen(
        list(map(str, (sys.executable, WORK, kind, seconds, out, "toggle"))), env=environment
    )
    used = 0
    while process.poll() is None:
        used = _own_time(process.pid) or used
        time.sleep(0.05)
    return _read(out), list(_costs(capture, used)) if sampled else []


def _own_time(pid: int) -> int:
    """Return the ns that our threads ran."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().strip() == "warplens-perf":
                total += int((task / "schedstat").read_text().split()[0])
    except (OSError, IndexError):
        return 0
    return total


def _costs(capture: Capture, used: int) -> Iterator[tuple[str, float, str, str]]:
    """What our threads take for a sample and for each of its frames: waking up, reading the stack, unwinding, reading Python's frames."""
    samples = frames = 0
    for spool in read_spools(capture.spool):
        parents = {record["node"]: record["parent"] for record in spool.of("cpu_frame")}
        depths = {0: 0}
        for node in sorted(parents):
            depths[node] = depths.get(parents[node], 0) + 1
        for record in spool.of("cpu_sample"):
            if record["domain"] == NATIVE:
                samples += record["count"]
                frames += record["count"] * depths.get(record["stack"], 0)
    note = f"{samples} samples of {frames / max(1, samples):.1f} frames"
    yield "our threads' CPU per sample", used / 1e3 / max(1, samples), "us", note
    yield "our threads' CPU per frame", used / max(1, frames), "ns", f"{note}; all that is done for a sample"


def _perf(folder: Path, kind: str, seconds: float, words: Sequence[str]) -> tuple[list[float], list[float]]:
    out = folder / "steps"
    out.unlink(missing_ok=True)
    reading, writing = os.pipe()
    command = [
        "perf",
        "record",
        "-q",
        "-e",
        "cpu-clock:u",
        "-F",
        str(HZ),
        *words,
        "-D",
        "-1",
        "--control",
        f"fd:{reading}",
    ]
    command += [
        "-o",
        str(folder / "perf.data"),
        "--",
        sys.executable,
        str(WORK),
        kind,
        str(seconds),
        str(out),
    ]
    process = subprocess.Popen(
        command, pass_fds=[reading], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(reading)
    windows: list[tuple[int, int]] = []
    try:
        while process.poll() is None:
            begin = _tell(writing, b"enable\n")
            windows.append((begin, _tell(writing, b"disable\n")))
    except BrokenPipeError:
        process.wait()
    os.close(writing)
    return parted(_read(out), windows)


def _tell(control: int, command: bytes) -> int:
    os.write(control, command)
    now = time.perf_counter_ns()
    time.sleep(TOGGLE_NS / 1e9)
    return now
