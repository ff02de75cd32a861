"""Memory over time of a program with all CPU sources on, in a small container, beside the plain program.

`python benchmarks/long_run.py --seconds 7200 --events 50000 --memory 512` is a soak: it prints the least and the most of each minute.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from harness import Row

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(1, str(ROOT))

from tests.support.programs.memory_cgroup import MemoryCgroup, memory_cgroup, why_not  # noqa: E402
from tests.support.programs.under_everything import EVERYTHING  # noqa: E402

SERIES = "after "  # rows of the picture begin with it
CONTAINERS = (128, 512, 256)  # MiB
THREADS = 4
MIB = 1 << 20
_PROGRAM = HERE / "_long_work.py"
_LOOK_S = 1.0
_POINTS = 60  # of each line of the picture
_EXIT = 7
_APART_S = 30.0
_NO_CONVERTER = 128 * MIB  # a container that has less free: the report is written at the end


@dataclass(frozen=True)
class Look:
    """One look at both runs: `after` s; the rest bytes. `cache` and `dirty` are those of the whole container."""

    after: float
    plain: int
    recorded: int
    launcher: int
    spool: int
    cache: int
    dirty: int


@dataclass
class Run:
    """Both runs: what was seen, how many ranges the recorded program made, and the seconds from its end to the launcher's."""

    seconds: float
    memory: int
    looks: list[Look] = field(default_factory=list)
    ranges: int = 0
    plain_ranges: int = 0
    end_s: float = 0.0
    kills: int = 0
    errors: str = ""

    @property
    def later(self) -> list[Look]:
        """What was seen after both programs had begun."""
        return [look for look in self.looks if look.after >= min(5.0, self.seconds / 4)]


def lacks() -> str | None:
    """Say why there can be no container."""
    return why_not()


def run(quick: bool) -> list[Row]:
    """Run both side by side for 10 minutes (20 s) in each container. The last one is drawn.

    The containers run at once and start half a minute apart: their programs sleep most of the time, and no two reports end together.
    """

    def measured(number: int) -> Run:
        time.sleep(number * _APART_S)
        return measure(20.0 if quick else 600.0, 20_000, CONTAINERS[number] * MIB)

    with ThreadPoolExecutor(len(CONTAINERS)) as pool:
        results = list(pool.map(measured, range(len(CONTAINERS))))
    return [row for result in results for row in rows(result, drawn=result is results[-1])]


def page(rows: list[dict[str, object]]) -> tuple[str, list[dict[str, object]]]:
    """For the page of results: the lines of the picture stand in the guide."""
    picture = "The picture of these runs is in [Record for days](../guide/long-runs.md)."
    return picture, [row for row in rows if not str(row["what"]).startswith(SERIES)]


def rows(result: Run, *, drawn: bool = True) -> list[Row]:
    """What is promised, then the lines of the picture where it is `drawn`."""
    later = result.later
    name = f"{result.memory // MIB} MiB, {result.seconds:,.0f} s"
    beyond = max(look.recorded for look in later) - max(look.plain for look in later)
    half = [look for look in later if look.after > result.seconds / 2]
    grown = max(look.recorded for look in half) - max(look.recorded for look in later if look not in half)
    launcher = max(look.launcher for look in half) - max(look.launcher for look in later if look not in half)
    last = later[-1]
    killed = "; the kernel ended the conversion, `warplens info` finished it" if result.kills else ""
    made = [
        Row(
            f"{name}: program, resident at most",
            max(look.recorded for look in later) / MIB,
            "MiB",
            "plain",
            _most(later) / MIB,
        ),
        Row(
            f"{name}: … beyond the plain run",
            beyond / MIB,
            "MiB",
            budget=32.0 + THREADS,
            budget_on="value",
            note="32 MiB and 1 MiB a thread",
        ),
        Row(
            f"{name}: … more in the second half than in the first",
            grown / MIB,
            "MiB",
            budget=2.0,
            budget_on="value",
        ),
        Row(
            f"{name}: launcher, resident at most while it records",
            max(look.launcher for look in later) / MIB,
            "MiB",
        ),
        Row(
            f"{name}: … launcher: more in the second half than in the first",
            launcher / MIB,
            "MiB",
            budget=2.0,
            budget_on="value",
        ),
        Row(
            f"{name}: pages of the container that wait for the disk, at most",
            max(look.dirty for look in later) / MIB,
            "MiB",
        ),
        Row(
            f"{name}: spool",
            last.spool / MIB / last.after,
            "MiB/s",
            note=f"{last.spool / MIB:,.0f} MiB at the end",
        ),
        Row(
            f"{name}: ranges",
            result.ranges / result.seconds,
            "1/s",
            "plain",
            result.plain_ranges / result.seconds,
            note="all other sources on",
        ),
        Row(
            f"{name}: from the program's end to the launcher's",
            result.end_s,
            "s",
            "the run, s",
            result.seconds,
            budget=0.5 + 0.02 * result.seconds if result.memory > _NO_CONVERTER else None,
            budget_on="value",
            note=f"with the report{killed}",
        ),
    ]
    due = 0.0
    for look in later if drawn else ():
        if look.after < due:
            continue
        due = look.after + result.seconds / _POINTS
        at = f"{SERIES}{look.after:.0f} s"
        made += [
            Row(f"{at}: plain", look.plain / MIB, "MiB"),
            Row(f"{at}: recorded", look.recorded / MIB, "MiB"),
            Row(f"{at}: launcher", look.launcher / MIB, "MiB"),
            Row(f"{at}: spool", look.spool / MIB, "MiB"),
        ]
    return made


def measure(
    seconds: float, events: int, memory: int, look: Callable[[Look], None] = lambda look: None
) -> Run:
    """Run both programs for so long with `events` ranges a second, the recorded one in a container of `memory` bytes."""
    result = Run(seconds, memory)
    program = [sys.executable, str(_PROGRAM), f"{seconds:g}", str(events), str(THREADS)]
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder, memory_cgroup(memory) as group:
        report = Path(folder) / "x.warplens"
        words = [
            sys.executable,
            "-m",
            "warplens",
            "profile",
            "--light",
            "-q",
            "-o",
            str(report),
            *EVERYTHING,
            *program,
        ]
        with _started(program) as plain, _started(group.wrap(*words)) as ours:
            _watch(result, plain, ours, group, report, look)
            result.plain_ranges = int(_end(plain).split()[0])
            result.ranges = int(_end(ours).split()[0])
            result.errors = ours.stderr.read() if ours.stderr else ""
        result.kills = group.kills
        if (written := _finished(report)) != result.ranges:
            raise RuntimeError(f"the report has {written:,} ranges of {result.ranges:,}")
    return result


@contextlib.contextmanager
def _started(words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NVTX_", "WARPLENS_"))
    }
    environment["PYTHONPATH"] = str(ROOT / "src")
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _watch(
    result: Run,
    plain: subprocess.Popen[str],
    ours: subprocess.Popen[str],
    group: MemoryCgroup,
    report: Path,
    look: Callable[[Look], None],
) -> None:
    """Look once a second until the launcher ends."""
    begun = time.monotonic()
    program = ended = 0.0
    while ours.poll() is None:
        child = _program(ours.pid) if not program else int(program)
        program = child or 0
        alive = child and _resident(child)
        now = time.monotonic()
        if alive and plain.poll() is None:
            pages = group.pages
            seen = Look(
                now - begun,
                _resident(plain.pid),
                alive,
                _resident(ours.pid),
                _size(report),
                pages["cache"],
                pages["dirty"],
            )
            result.looks.append(seen)
            look(seen)
        elif program and not ended and not alive:
            ended = now
        time.sleep(0.05 if ended or now - begun > result.seconds - 1 else _LOOK_S)
    result.end_s = time.monotonic() - (ended or time.monotonic())


def _program(launcher: int) -> int | None:
    try:
        pids = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    except OSError:
        return None
    # The launcher's forks have its words, with the program's behind them.
    return next((int(pid) for pid in pids if _words(pid)[1:2] == [str(_PROGRAM)]), None)


def _words(pid: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def _resident(pid: int) -> int:
    """Bytes; 0 where there is no such process any more."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def _size(report: Path) -> int:
    """What spools take on the disk; files come and go."""
    total = 0
    for path in report.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total


def _end(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    out = process.stdout.read()
    if process.wait() != _EXIT:
        raise RuntimeError(
            f"exit code {process.returncode} instead of {_EXIT}: {process.stderr.read() if process.stderr else ''}"
        )
    return out


def _finished(report: Path) -> int:
    """Return how many ranges the report has, wherever it was written."""
    words = [sys.executable, "-m", "warplens", "info", "-f", "json", str(report)]
    done = subprocess.run(
        words, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, check=True, stdout=subprocess.PIPE
    )
    return int(json.loads(done.stdout)["tables"]["nvtx_ranges"])


def _most(looks: Sequence[Look]) -> int:
    return max(look.plain for look in looks)


def main() -> int:
    """Run a soak, and print a line for each minute."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--events", type=int, default=50_000, help="ranges a second")
    parser.add_argument("--memory", type=int, default=256, help="MiB of the container")
    options = parser.parse_args()
    minute: list[Look] = []

    def show(seen: Look) -> None:
        if minute and int(seen.after // 60) != int(minute[0].after // 60):
            _print_minute(minute)
            minute.clear()
        minute.append(seen)

    print(
        "MiB, least-most of each minute\nminute  plain      recorded   launcher   spool  cache  dirty",
        flush=True,
    )
    result = measure(options.seconds, options.events, options.memory * MIB, show)
    _print_minute(minute)
    for row in rows(result):
        if not row.what.startswith(SERIES):
            print(f"{row.what}: {row.value:,.4g} {row.unit}  {row.note}", flush=True)
    print(result.errors, end="", file=sys.stderr)
    return 0


def _print_minute(looks: Sequence[Look]) -> None:
    if looks:
        spans = (_span([getattr(look, name) for look in looks]) for name in ("plain", "recorded", "launcher"))
        last = looks[-1]
        rest = (
            f"{last.spool // MIB:>5}  {last.cache // MIB:>5}  {max(look.dirty for look in looks) // MIB:>5}"
        )
        print(f"{looks[0].after // 60:>6.0f}  {'  '.join(spans)}  {rest}", flush=True)


def _span(values: Sequence[int]) -> str:
    return f"{min(values) / MIB:.1f}-{max(values) / MIB:.1f}".ljust(11)[:11]


if __name__ == "__main__":
    sys.exit(main())
