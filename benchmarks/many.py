"""Cost of many small items: time per name, thread and process to record and convert, and of commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from c_api import _build
from harness import Row
from processes import _environment

COMMAND = (sys.executable, "-m", "warplens")
ALL = ("--sample", "process-tree", "--python-sampling=true", "-t", "nvtx,osrt,gc,gil,import,python")
PROCESS_BUDGETS = {"by default": ((), 1000.0), "with all CPU sources": (ALL, 2000.0)}  # us
AGENT_BUDGET = 32.0  # MiB, as resident_size has it
COMMAND_BUDGETS = (5.0, 512.0)  # s, MiB
QUESTIONS = ("info", "stats", "analyze", "timeline", "flame", "export")
HERE = Path(__file__).resolve().parent


def run(quick: bool) -> Iterator[Row]:
    """Record processes, threads and names without us, then with the launcher; then ask each report everything."""
    share = 20 if quick else 1
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        program = _build("many.c", HERE, folder)
        for label, (options, budget) in PROCESS_BUDGETS.items():
            yield from _small(
                program, folder, "processes", 10_000 // share, f"process, {label}", options, budget
            )
            yield from _asked(folder, f"{10_000 // share:,} processes, {label}")
        for mode, count in (
            ("threads", 100_000 // share),
            ("names", 1_000_000 // share),
            ("ranges", 10_000_000 // share),
        ):
            yield from _small(program, folder, mode, count, mode.removesuffix("s"), (), None)
            yield from _asked(folder, f"{count:,} {mode}")


def _used(words: Sequence[str | Path], folder: Path) -> tuple[str, float, float, float]:
    """Run a command; return what it printed, its s on the wall, its s of CPU time (children's too) and its peak memory in MiB."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, words)),
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    text = process.stdout.read().decode()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), (words, process.returncode)
    return text, time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _small(
    program: Path,
    folder: Path,
    mode: str,
    count: int,
    label: str,
    options: Sequence[str],
    budget: float | None,
) -> list[Row]:
    """Rows for what one takes more, recording and conversion together, and for what the program's memory grows by."""
    quiet: list[str | Path] = [*COMMAND, "profile", "--light", "-q", "-f", "-o", folder / "x", *options]
    _, start, start_cpu, _ = _used([*quiet, "/bin/true"], folder)  # the launcher and a report of nothing
    alone, plain, plain_cpu, _ = _used([program, mode, str(count)], folder)
    text, wall, cpu, _ = _used([*quiet, program, mode, str(count)], folder)
    more = (cpu - start_cpu - plain_cpu) / count * 1e6
    note = f"CPU time, {count:,} of them, recorded and converted; {(wall - start - plain) / count * 1e6:.1f} us by the clock on the wall"
    rows = [
        Row(
            f"more for each {label}",
            more,
            "us",
            "alone, us",
            plain_cpu / count * 1e6,
            budget=budget,
            budget_on="value",
            note=note,
        ),
    ]
    grown = [json.loads(words)["kib"] / 1024 for words in (alone, text)]
    if mode != "processes":
        rows.append(
            Row(
                f"memory of a program with {count:,} {mode}: more",
                grown[1] - grown[0],
                "MiB",
                budget=AGENT_BUDGET,
                budget_on="value",
            )
        )
    return rows


def _asked(folder: Path, label: str) -> list[Row]:
    rows = []
    for question in QUESTIONS:
        words = [
            *COMMAND,
            question,
            folder / "x.warplens",
            *(["-f", "-o", folder / "export"] if question == "export" else ()),
        ]
        text, wall, cpu, memory = _used(words, folder)
        lines = len(text.splitlines())
        if question == "flame" and not lines:
            continue  # there are no samples
        seconds, most = COMMAND_BUDGETS
        what = f"{question} of {label}"
        note = f"{lines} lines" if question != "export" else "for Perfetto"
        # What else runs on the machine makes no difference to that.
        rows.append(
            Row(
                f"{what}: CPU time",
                cpu,
                "s",
                budget=seconds,
                budget_on="value",
                note=f"{note}; {wall:.1f} s by the clock",
            )
        )
        rows.append(Row(f"{what}: peak memory", memory, "MiB", budget=most, budget_on="value"))
    return rows
