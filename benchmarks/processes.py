"""Cost of profiling for a short program and for each exec, fork and thread, beside the plain program."""

from __future__ import annotations

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from c_api import _build
from harness import Row

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
COMMAND = (sys.executable, "-m", "warplens", "profile", "--light", "-q", "--keep-raw", "-f", "-o")
EXEC_BUDGET_US = 200.0
THREADS = 10_000
THREADS_BUDGET = 256.0  # MiB of spool for THREADS threads with one range each
CHILDREN = 1000
CHILDREN_BUDGET = 512.0  # MiB of spool for CHILDREN children with one range each


def run(quick: bool) -> list[Row]:
    """Time whole commands, then programs that time themselves, with and without the launcher in turn."""
    compileall.compile_dir(SOURCE, quiet=2)  # as pip does
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        program = _build("processes.c", HERE, folder)
        rounds = 3 if quick else 7
        rows = _commands(folder, rounds)
        share = 10 if quick else 1
        rows += _operations(
            program,
            folder,
            "exec",
            "exec of /bin/true (posix_spawn and wait)",
            1000 // share,
            rounds,
            budget=EXEC_BUDGET_US,
        )
        rows += _operations(
            program,
            folder,
            "fork",
            "fork of a recorded process, child records nothing",
            1000 // share,
            rounds,
        )
        rows += _operations(
            program,
            folder,
            "recorded-fork",
            "fork, child of one range",
            CHILDREN // share,
            rounds,
            size=CHILDREN_BUDGET,
        )
        rows += _operations(
            program, folder, "threads", "thread of one range", THREADS // share, rounds, size=THREADS_BUDGET
        )
        return rows


def _environment() -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("NVTX_", "WARPLENS_"))},
        "PYTHONPATH": str(SOURCE),
    }


def _output(words: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=_environment(), check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def _seconds(words: Sequence[str | Path], folder: Path) -> float:
    begin = time.perf_counter()
    _output(words, folder)
    return time.perf_counter() - begin


def _commands(folder: Path, rounds: int) -> list[Row]:
    rows = []
    for label, words in {
        "/bin/true": ["/bin/true"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }.items():
        alone, ours = [], []
        for _ in range(rounds):
            alone.append(_seconds(words, folder) * 1e3)
            ours.append(_seconds([*COMMAND, folder / "x", *words], folder) * 1e3)
        note = "start of the launcher, and a finished report"
        rows.append(
            Row(
                f"warplens profile {label}",
                statistics.median(ours),
                "ms",
                "alone, ms",
                statistics.median(alone),
                note=note,
            )
        )
    return rows


def _operations(
    program: Path,
    folder: Path,
    mode: str,
    label: str,
    count: int,
    rounds: int,
    *,
    budget: float | None = None,
    size: float | None = None,
) -> list[Row]:
    """Rows for what one operation takes more CPU time, children's too, in us, and for the spool's size."""
    alone, ours = [], []
    report = folder / "x"
    for _ in range(rounds):
        alone.append([float(word) / 1e3 for word in _output([program, mode, str(count)], folder).split()])
        ours.append(
            [
                float(word) / 1e3
                for word in _output([*COMMAND, report, program, mode, str(count)], folder).split()
            ]
        )
    extra = [
        statistics.median(one[i] - other[i] for one, other in zip(ours, alone, strict=True)) for i in (0, 1)
    ]
    before = statistics.median(one[1] for one in alone)
    note = f"CPU time, {count:,} of them; {extra[0]:.0f} us by the clock on the wall"
    rows = [
        Row(
            f"more for each {label}",
            extra[1],
            "us",
            "alone, us",
            before,
            budget=budget,
            budget_on="value",
            note=note,
        )
    ]
    if size is not None:
        raw = sum(file.stat().st_blocks * 512 for file in (folder / "x.warplens" / "raw").rglob("*.spool"))
        rows.append(Row(f"spool of {count:,} of them", raw / 2**20, "MiB", budget=size, budget_on="value"))
    return rows
