"""The end of a recording: from the program's last moment to the command's, written during the run or at its end, and what the former takes.

A Python program pushes and pops 125,000 ranges a second, three deep, in one that lasts as long as it does. Another one has four
threads that make 4,000 ranges a second with calls, locks and garbage among them, and all sources are on (`_long_work`); its summary
is printed, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from harness import Row

SOURCE = Path(__file__).resolve().parent.parent / "src"
RATE = 125_000
SHARE_BUDGET = 0.06  # of a core: the last slice may be begun just before
END_BUDGET_S, END_SHARE = 0.5, 0.02  # of a run with all sources
SERVED = (str(Path(__file__).resolve().parent / "_long_work.py"), "4000", "4")
PROGRAM = """
import sys, time
from warplens import nvtx
seconds, rate = float(sys.argv[1]), int(sys.argv[2])
begin = time.monotonic()
tick = 0
nvtx.push_range("main")
while time.monotonic() - begin < seconds:
    nvtx.push_range("step")
    for number in range(rate // 200):
        nvtx.push_range("outer")
        nvtx.push_range("inner")
        nvtx.pop_range()
        nvtx.pop_range()
    nvtx.pop_range()
    tick += 1
    time.sleep(max(begin + tick / 100 - time.monotonic(), 0))
nvtx.pop_range()
print(time.monotonic())
"""


def run(quick: bool) -> list[Row]:
    """Record for 20 s, and for 30 and 150 s unless `quick`; a program of no length shows what each command takes."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        least, _, _ = _end(folder, "end", 0.1)
        for seconds in (20,) if quick else (30, 150):
            all_at_end, _, _ = _end(folder, "end", seconds, served=True)
            all_during, cpu, _ = _end(folder, "during", seconds, served=True)
            rows += [
                Row(
                    f"{seconds} s with all sources: the command's end",
                    all_during,
                    "s",
                    "--convert end, s",
                    all_at_end,
                    budget=END_BUDGET_S + END_SHARE * seconds,
                    budget_on="value",
                ),
                Row(
                    f"{seconds} s with all sources: what the converter takes",
                    cpu / seconds,
                    "cores",
                    budget=SHARE_BUDGET,
                    budget_on="value",
                ),
            ]
            label = f"{seconds} s of {RATE:,} ranges/s"
            at_end, _, _ = _end(folder, "end", seconds)
            during, cpu, (taken, length) = _end(folder, "during", seconds)
            rows += [
                Row(
                    f"{label}: the command's end",
                    during,
                    "s",
                    "--convert end, s",
                    at_end,
                    note=f"of a program without ranges {least:.2f}",
                ),
                Row(
                    f"{label}: what the converter takes",
                    cpu / seconds,
                    "cores",
                    budget=SHARE_BUDGET,
                    budget_on="value",
                ),
                Row(
                    f"{label}: what the spool takes then",
                    taken / 2**20,
                    "MiB",
                    "its length, MiB",
                    length / 2**20,
                ),
            ]
    return rows


def _end(
    folder: Path, when: str, seconds: float, *, served: bool = False
) -> tuple[float, float, tuple[int, int]]:
    """Return how long the command goes on after the program (s); until then, the CPU seconds of its other child, and the spool's size.

    Of the spool: the bytes that it takes on the disk, and its length. `served`: the program with all sources on.
    """
    program, *more = SERVED if served else ("program.py", str(RATE))
    words = [
        sys.executable,
        "-m",
        "warplens",
        "profile",
        *(("--all",) if served else ("--light", "-q")),
        "-f",
        "-o",
        "x",
        "--convert",
        when,
        sys.executable,
        program,
        str(seconds),
        *more,
    ]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NVTX_", "WARPLENS_"))
    }
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    taken, spool = [0.0], [(0, 0)]
    watch = (process.pid, time.monotonic() + seconds, taken, folder, spool, program)
    threading.Thread(target=_watch, args=watch, daemon=True).start()
    output, _ = process.communicate()
    return time.monotonic() - float(output.split()[-1]), taken[0], spool[0]


def _watch(
    launcher: int,
    until: float,
    taken: list[float],
    folder: Path,
    spool: list[tuple[int, int]],
    program: str,
) -> None:
    """Keep the CPU seconds of the launcher's child that is not the program, and the size of the spool."""
    tick = os.sysconf("SC_CLK_TCK")
    while time.monotonic() < until:
        time.sleep(0.25)
        with suppress(OSError):
            files = [path.stat() for path in folder.glob("x.warplens/spool/*/*.spool*")]
            spool[0] = sum(file.st_blocks for file in files) * 512, sum(file.st_size for file in files)
        for entry in Path("/proc").iterdir():
            try:
                fields = (
                    (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else ()
                )
                if (
                    fields
                    and int(fields[1]) == launcher
                    and program.encode() not in (entry / "cmdline").read_bytes()
                ):
                    taken[0] = (int(fields[11]) + int(fields[12])) / tick
            except OSError:
                continue
