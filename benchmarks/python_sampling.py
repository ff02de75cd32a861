"""Cost of sampling Python stacks, growth of the sampler's time with threads, and accuracy of the stacks.

Cost is measured within one process: windows of 200 ms are opened and closed in turn while it does equal steps, and steps inside
are held against those outside. The time that a step waited for a CPU is subtracted, so that other work on the machine counts
little. A/A: the same without the sampler.
"""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from _sampled_work import CALLS
from _steps import Steps, parted, standard_error, trimmed
from harness import Row
from tests.support.optional_dependencies import environments
from tests.support.programs.capturing import Capture
from tests.support.programs.python_running import CPU_STUB
from tests.support.reports.python_stacks import PYTHON_SAMPLES, samples_of
from tests.support.reports.spool_records import read_spools
from warplens.recording.agent.library import CpuSettings

WORK = Path(__file__).with_name("_sampled_work.py")
HZ = 1000
TOGGLE_S = 0.2
DUE, MISSED = 6, 7  # CpuNotice
OPCODES = 2048


def run(quick: bool) -> list[Row]:
    """Measure it all; `quick`: shorter, for a look."""
    seconds = 6.0 if quick else 60.0
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        return [
            *_costs(Path(name), seconds),
            *_threads(Path(name), 2.0 if quick else 5.0),
            *_opcodes(Path(name), seconds / 12),
            *_truth(Path(name), seconds / 2),
        ]


def started(
    folder: Path, words: Sequence[str | Path], *, flags: int = PYTHON_SAMPLES, is_open: bool = False
) -> tuple[Capture, subprocess.Popen[bytes]]:
    """Start a program with the sampler in it."""
    spool = Path(tempfile.mkdtemp(dir=folder))
    cpu = CpuSettings(flags=flags, python_hz=HZ)
    capture = Capture(spool, cpu=cpu, open=is_open)
    (spool / "processes.log").touch()
    environment = {**os.environ, "LD_PRELOAD": str(CPU_STUB), "WARPLENS_SPOOL": str(spool)}
    return capture, subprocess.Popen([str(word) for word in words], env=environment)


def _costs(folder: Path, seconds: float) -> Iterator[Row]:
    for label, kind, pinned, sampled, budget in (
        ("A/A, pure Python", "py", False, False, None),
        ("pure Python", "py", False, True, 1.5),
        ("A/A, NumPy", "np", False, False, None),
        ("NumPy", "np", False, True, 1.0),
        ("pure Python, all on one CPU", "py", True, True, None),
    ):
        out = folder / "steps"
        prefix = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if pinned else []
        capture, process = started(
            folder,
            [*prefix, sys.executable, WORK, kind, str(seconds), out],
            flags=PYTHON_SAMPLES if sampled else 0,
        )
        while process.poll() is None:
            capture.open()
            time.sleep(TOGGLE_S)
            capture.close()
            time.sleep(TOGGLE_S)
        steps: Steps = list(struct.iter_unpack("<5q", out.read_bytes()))
        edges = [(window.open_ns, window.close_ns) for window in capture.windows()]
        with_us, without = parted(steps, edges)
        if min(len(with_us), len(without)) < 50:
            yield Row(f"{label}: time", 0.0, "%", note="too few steps")
            continue
        percent = 100 * (trimmed(with_us) / trimmed(without) - 1)
        error = standard_error(with_us, without)
        note = (
            f"± {error:.2f} (standard error), {len(with_us)} steps inside of windows, {len(without)} outside"
        )
        yield Row(f"{label}: more time at {HZ} Hz", percent, "%", budget=budget, budget_on="value", note=note)


def _threads(folder: Path, seconds: float) -> Iterator[Row]:
    """The sampler's own time for one look at all threads, and how many looks it could do."""
    for count, budget in ((1, None), (9, None), (33, 60.0), (65, None)):
        capture, process = started(
            folder, [sys.executable, WORK, "threads", str(seconds), "-", str(count)], is_open=True
        )
        used, taken, due = _looks(capture, process)
        cost = used / 1e3 / max(1, taken)
        yield Row(
            f"one look at {count} threads",
            cost,
            "us of CPU",
            budget=budget,
            budget_on="value",
            note=f"{taken} of {due} looks taken",
        )


def _looks(capture: Capture, process: subprocess.Popen[bytes]) -> tuple[int, int, int]:
    """Wait for the program: ns that the sampler's thread ran, looks that it took, looks that were due."""
    used = 0
    while process.poll() is None:
        used = own_time(process.pid) or used
        time.sleep(0.05)
    notices = Counter[int]()
    for record in capture.records("cpu_notice"):
        notices[record["notice"]] += record["value"]
    return used, notices[DUE] - notices[MISSED], notices[DUE]


def _opcodes(folder: Path, seconds: float, rounds: int = 5) -> Iterator[Row]:
    """What the instruction of each sample costs: looks with it and without, in turn."""
    used, looks, written = Counter[int](), Counter[int](), Counter[int]()
    for flags in (PYTHON_SAMPLES, PYTHON_SAMPLES | OPCODES) * rounds:
        capture, process = started(
            folder, [sys.executable, WORK, "truth", str(seconds), "-"], flags=flags, is_open=True
        )
        time_ns, taken, _ = _looks(capture, process)
        used[flags] += time_ns
        looks[flags] += taken
        written[flags] += len(capture.records("cpu_sample"))
    with_us, without = PYTHON_SAMPLES | OPCODES, PYTHON_SAMPLES
    cost = {flags: used[flags] / max(1, looks[flags]) for flags in (with_us, without)}
    note = f"{cost[with_us] / 1e3:.1f} us against {cost[without] / 1e3:.1f} us, {looks.total()} looks at a recursive program"
    yield Row(
        "a look with opcodes, against one without",
        cost[with_us] / cost[without],
        "x",
        budget=1.5,
        budget_on="value",
        note=note,
    )
    records = {flags: written[flags] / max(1, looks[flags]) for flags in (with_us, without)}
    note = f"{records[with_us]:.2f} records for each look against {records[without]:.2f}"
    yield Row(
        "sample records with opcodes, against those without",
        records[with_us] / records[without],
        "x",
        note=note,
    )


def own_time(pid: int) -> int:
    """Return the ns that the sampler's thread ran; 0 where it is not there."""
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().strip() == "warplens-stacks":
                return int((task / "schedstat").read_text().split()[0])
    except (OSError, IndexError):
        pass
    return 0


def _truth(folder: Path, seconds: float, rounds: int = 4) -> Iterator[Row]:
    """Impossible stacks of a program whose calls are known; innermost functions against py-spy's, which stops the program to look."""
    spy = next(
        (
            Path(python).with_name("py-spy")
            for python, _ in environments()
            if Path(python).with_name("py-spy").exists()
        ),
        None,
    )
    stacks = Counter[tuple[str, ...]]()
    theirs = Counter[str]()
    for _ in range(rounds):
        stacks += _ours(folder, seconds / rounds)
        theirs += _py_spy(spy, folder, seconds / rounds) if spy else Counter()
    total = stacks.total()
    impossible = sum(
        count
        for stack, count in stacks.items()
        if any(b not in CALLS.get(a, ()) for a, b in itertools.pairwise(stack))
    )
    yield Row(
        "impossible stacks",
        100 * impossible / max(1, total),
        "%",
        budget=1.0,
        budget_on="value",
        note=f"of {total} samples",
    )
    if theirs:
        ours = Counter[str]()
        for stack, count in stacks.items():
            ours[stack[-1]] += count
        share = {
            name: ours[name] / max(1, total) - theirs[name] / theirs.total()
            for name in ours.keys() | theirs.keys()
        }
        note = f"total variation distance of innermost functions; {total} samples of ours, {theirs.total()} of theirs"
        yield Row(
            "agreement with py-spy",
            sum(map(abs, share.values())) / 2,
            "",
            budget=0.04,
            budget_on="value",
            note=note,
        )


def _ours(folder: Path, seconds: float) -> Counter[tuple[str, ...]]:
    """What we saw below `known`."""
    capture, process = started(folder, [sys.executable, WORK, "truth", str(seconds), "-"], is_open=True)
    process.wait()
    stacks = Counter[tuple[str, ...]]()
    for spool in read_spools(capture.spool):
        for sample in samples_of(spool):
            if "known" in sample.names:
                names = sample.names[sample.names.index("known") :]
                stacks[tuple(name.rpartition(".")[2] for name in names)] += sample.count
    return stacks


def _py_spy(spy: Path, folder: Path, seconds: float) -> Counter[str]:
    out = folder / "spy"
    words = [
        spy,
        "record",
        "-r",
        str(HZ),
        "-f",
        "raw",
        "-o",
        out,
        "--",
        sys.executable,
        WORK,
        "truth",
        str(seconds),
        "-",
    ]
    subprocess.run(list(map(str, words)), check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = Counter[str]()
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else ():
        stack, _, count = line.rpartition(" ")
        names = [word.partition(" (")[0].rpartition(".")[2] for word in stack.split(";")]
        if "known" in names:
            found[names[-1]] += int(count)
    return found
