"""Memory of conversion, `stats` and `analyze`, beside the same commands on an almost empty recording.

Each command runs in its own process, and conversion as in the launcher's child. NVTX ranges as in `finish`, samples of 20,000 stacks.
`WARPLENS_BENCH_HUGE=1` adds 10^8 ranges, which takes 4 GB of disk and some minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import finish
from finish_cpu import EVERY
from finish_cpu import THREADS as SAMPLED
from finish_cuda import _rows, _write
from harness import Row
from warplens.testing import spool_writer as sw

STACKS = 20_000
BLOCK = 1_000_000
BUDGET = 128.0  # MiB beyond the libraries
EMPTY = 8  # ranges or samples
_CONVERT = """
import sys
from warplens.cli.light import give_back_early, import_lightly
import_lightly()
give_back_early()
from warplens.convert.finish import finish
finish(sys.argv[1], sys.argv[2])
"""


def run(quick: bool) -> list[Row]:
    """Measure 10^6 and 10^7 ranges and 10^7 samples, only 10^6 each if `quick`."""
    huge = (100_000_000,) if os.environ.get("WARPLENS_BENCH_HUGE") else ()
    ranges = (1_000_000,) if quick else (1_000_000, 10_000_000, *huge)
    samples = (1_000_000,) if quick else (10_000_000,)
    rows = []
    for kind, make, sizes in (("ranges", finish.make_spool, ranges), ("samples", make_samples, samples)):
        least = _measured(make, EMPTY)
        for size in sizes:
            peaks = _measured(make, size)
            label = f"{size:.0e} {kind}".replace("e+0", "e")
            for what, peak in peaks.items():
                own, budget = peak - least[what], BUDGET if what == "conversion" else None
                rows.append(
                    Row(
                        f"{what} of {label}: own memory",
                        own,
                        "MiB",
                        "of an empty one, all",
                        least[what],
                        budget=budget,
                        budget_on="value",
                    )
                )
    return rows


def make_samples(directory: Path, samples: int) -> None:
    """Write a spool directory with `samples` samples of four threads, in stacks of up to 40 frames."""
    names = {7: "/app/model.py"} | {
        10 + number: f"package.module.Class{number}.method" for number in range(STACKS)
    }
    about = [sw.meta("thread", thread=thread, tid=100 + thread, start=1) for thread in range(SAMPLED)]
    path = sw.write(directory, sw.spool([sw.strings(names), sw.records(sw.NO_THREAD, about)]))
    rng = np.random.default_rng(1)
    with open(path, "r+b") as file:
        file.seek(0, 2)
        number = np.arange(STACKS)
        frames = _rows("cpu_frame", STACKS)
        frames["node"], frames["parent"] = number + 1, np.where(number % 40, number, 0)
        frames["domain"], frames["name"], frames["file"], frames["line"], frames["first_line"] = (
            2,
            10 + number,
            7,
            1 + number,
            1,
        )
        _write(file, frames)
        for first in range(0, samples, BLOCK):
            number = np.arange(first, min(first + BLOCK, samples))
            rows = _rows("cpu_sample", len(number))
            rows["start"] = rows["end"] = 1_000_000 + number * EVERY
            rows["domain"], rows["count"], rows["interval"], rows["cpu"], rows["flags"] = (
                1,
                1,
                1_000_000,
                0xFFFFFFFF,
                1,
            )
            rows["tid"], rows["stack"] = 100 + number % SAMPLED, rng.integers(1, STACKS + 1, len(number))
            _write(file, rows)
        end = file.tell()
        file.seek(56)
        file.write(np.array([end, end], "<u8").tobytes())


def _measured(make: Callable[[Path, int], None], size: int) -> dict[str, float]:
    """Return the peak memory (MiB) of each command on a recording of `size` events."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
        spool, report = Path(folder) / "spool", Path(folder) / "report.warplens"
        make(spool, size)
        commands = {
            "conversion": [sys.executable, "-c", _CONVERT, spool, report],
            "stats": [sys.executable, "-m", "warplens", "stats", report],
            "analyze": [sys.executable, "-m", "warplens", "analyze", report],
        }
        return {what: _peak([str(word) for word in words]) for what, words in commands.items()}


def _peak(words: list[str]) -> float:
    """Run a command and return the most memory that it had resident, in MiB. What `wait4` says includes ours, from before it began."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent / "src")}
    peak = 0
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        while child.poll() is None:
            peak = max(peak, _high_water(child.pid, words[0]))
            time.sleep(0.005)
        if child.returncode not in (0, 1):
            errors.seek(0)
            raise RuntimeError(f"{words}: {errors.read().decode(errors='replace')[-500:]}")
    return peak / 1024


def _high_water(pid: int, program: str) -> int:
    """Return the most KiB that a process had resident since it began `program`; 0 where it has not, or has ended."""
    try:
        if not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(program.encode() + b"\0"):
            return 0
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM:")), 0)
