"""Time from the program's exit to the command's exit, with conversion during the run or after it.

Two programs run for the same time. One pushes and pops 125,000 ranges a second, three deep, in one that lasts as long as it does. The
other has four threads that make 4,000 ranges a second with calls, locks and garbage among them, and all sources are on (`_long_work`).
Both summaries are printed. A row takes two runs, so all of it ends within four minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness import Row

SOURCE = Path(__file__).resolve().parent.parent / "src"
RATE = 125_000
SECONDS, QUICK_SECONDS = 45, 15
SHARE_BUDGET = 0.06  # of a core: the last slice may be begun just before
END_BUDGET_S, END_SHARE = 0.5, 0.02  # of the run
SERVED = (str(Path(__file__).resolve().parent / "_long_work.py"), "4000", "4")
_LOOK_S = 0.1
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


@dataclass
class End:
    """How a command ended: `after` the program's last moment, s.

    `during` and `cpu`: CPU seconds of the converter until that moment and after it. Of the spool at
    that moment: the bytes that it `takes` on the disk, and its `length`.
    """

    after: float = 0.0
    during: float = 0.0
    cpu: float = 0.0
    takes: int = 0
    length: int = 0


def run(quick: bool) -> Iterator[Row]:
    """Record both programs for 45 s (15 s if `quick`), each in both ways; one of no length shows what each command takes."""
    seconds = QUICK_SECONDS if quick else SECONDS
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        for what, served in ((f"{RATE:,} ranges/s", False), ("all sources", True)):
            label = f"{seconds} s of {what}"
            least = _end(folder, "end", 0.1, served=served)
            at_end = _end(folder, "end", seconds, served=served)
            during = _end(folder, "during", seconds, served=served)
            yield Row(
                f"{label}: the command's end",
                during.after,
                "s",
                "--convert end, s",
                at_end.after,
                budget=END_BUDGET_S + END_SHARE * seconds,
                budget_on="value",
                note=f"{during.cpu:.2f} s of CPU time; of a program of no length {least.after:.2f} s",
            )
            yield Row(
                f"{label}: what the converter takes",
                during.during / seconds,
                "cores",
                budget=SHARE_BUDGET,
                budget_on="value",
            )
            yield Row(
                f"{label}: what the spool takes then",
                during.takes / 2**20,
                "MiB",
                "its length, MiB",
                during.length / 2**20,
            )


def _end(folder: Path, when: str, seconds: float, *, served: bool) -> End:
    """Record a program and return how the command ended. `served`: the program with all sources on."""
    program, *more = SERVED if served else ("program.py", str(RATE))
    words = [
        sys.executable,
        "-m",
        "warplens",
        "profile",
        "--all" if served else "--light",
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
    end = End()
    over = threading.Event()
    watch = (process.pid, time.monotonic() + seconds, over, end, folder, program)
    watching = threading.Thread(target=_watch, args=watch, daemon=True)
    watching.start()
    output, _ = process.communicate()
    end.after = time.monotonic() - float(output.split()[-1])
    over.set()
    watching.join()
    return end


def _watch(launcher: int, until: float, over: threading.Event, end: End, folder: Path, program: str) -> None:
    """Keep the CPU seconds of the launcher's child that is not the program, and the size of the spool."""
    while not over.wait(_LOOK_S):
        taken = _taken(launcher, program)
        if time.monotonic() > until:
            end.cpu = max(end.cpu, taken - end.during)
            continue
        end.during = taken or end.during
        with suppress(OSError):
            files = [path.stat() for path in folder.glob("x.warplens/spool/*/*.spool*")]
            end.takes, end.length = (
                sum(file.st_blocks for file in files) * 512,
                sum(file.st_size for file in files),
            )


def _taken(launcher: int, program: str) -> float:
    """Return the CPU seconds of the launcher's children that are not the program."""
    tick, taken = os.sysconf("SC_CLK_TCK"), 0.0
    with suppress(OSError):
        children = " ".join(path.read_text() for path in Path(f"/proc/{launcher}/task").glob("*/children"))
        for pid in children.split():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                if program.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    taken += (int(fields[11]) + int(fields[12])) / tick
    return taken
