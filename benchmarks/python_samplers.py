"""Compares samplers of Python stacks: added time, lost samples, and the accuracy of stacks and shares.

warplens, py-spy and, from 3.15 on, `python -m profiling.sampling` take 1,000 samples a second of a program whose calls are known and
which takes the time of its parts by the clocks of its threads. All take turns, each as a user would start it, and each counts the
threads that run: `--gil`, `--mode gil`, and the default of warplens.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from _sampled_work import CALLS
from harness import Row
from tests.support.optional_dependencies import environments

WORK = Path(__file__).with_name("_sampled_work.py")
HZ = 1000
FRAMES = CALLS.keys() | set().union(*CALLS.values())
PARTS = sorted(CALLS["timed_step"])
_OURS = [sys.executable, "-m", "warplens"]


@dataclass
class Seen:
    """The rounds with one sampler: steps of the program each second, stacks below `known`, and the program's own times."""

    rates: list[float] = field(default_factory=list)
    stacks: Counter[tuple[str, ...]] = field(default_factory=Counter)
    truth: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def run(quick: bool) -> Iterator[Row]:
    """Measure it all; `quick`: shorter, for a look."""
    seconds, rounds = (3.0, 1) if quick else (10.0, 4)
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        for count in (1, 64):
            results = {sampler: Seen() for sampler in _samplers()}
            for _ in range(rounds):
                for sampler, command in _samplers().items():
                    _look(results[sampler], command, Path(name), seconds, count)
            for sampler, seen in results.items():
                yield from _rows(
                    f"{count} thread{'s' if count > 1 else ''}, {sampler}", seen, results["nothing"]
                )


_Command = Callable[
    [Path, list[str]], list[list[str]]
]  # a file for stacks and a program: what to run, one after the other


def _samplers() -> dict[str, _Command]:
    """Those that are here."""
    samplers: dict[str, _Command] = {"nothing": lambda out, program: [program], "warplens": _warplens}
    if find_spec("profiling") is not None and find_spec("profiling.sampling") is not None:
        samplers["profiling.sampling"] = _profiling
    beside = [
        Path(sys.executable).with_name("py-spy"),
        *(Path(python).with_name("py-spy") for python, _ in environments()),
    ]
    spy = next((str(path) for path in beside if path.exists()), shutil.which("py-spy"))
    if spy is not None:
        words = [spy, "record", "--gil", "-r", str(HZ), "-f", "raw"]
        samplers["py-spy"] = lambda out, program: [[*words, "-o", str(out), "--", *program]]
    return samplers


def _warplens(out: Path, program: list[str]) -> list[list[str]]:
    report = str(out.with_suffix(".warplens"))
    options = [
        "-q",
        "-f",
        "-t",
        "nvtx",
        "--python-sampling=true",
        f"--python-sampling-frequency={HZ}",
        "-o",
        report,
    ]
    return [
        [*_OURS, "profile", "--light", *options, "--", *program],
        [*_OURS, "export", "-q", "-f", "-t", "collapsed", "-o", str(out), report],
    ]


def _profiling(out: Path, program: list[str]) -> list[list[str]]:
    options = ["-a", "--mode", "gil", "-r", str(HZ), "--collapsed", "-o", str(out)]
    return [[sys.executable, "-m", "profiling.sampling", "run", *options, *program[1:]]]


def _look(seen: Seen, command: _Command, folder: Path, seconds: float, count: int) -> None:
    """Run the program once with a sampler, and read the stacks that it wrote."""
    out, timed = folder / "stacks.txt", folder / "timed.json"
    out.unlink(missing_ok=True)
    program = [sys.executable, str(WORK), "timed", str(seconds), str(timed), str(count)]
    for words in command(out, program):
        done = subprocess.run(
            words, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
    own = json.loads(timed.read_text())
    seen.rates.append(own["steps"] / own["wall"])
    seen.truth.update(own["parts"])
    seen.seconds += own["wall"]
    # A torn read may be in a name, and no text.
    for line in out.read_text(encoding="utf-8", errors="replace").splitlines() if out.exists() else ():
        stack, _, number = line.rpartition(" ")
        names = [next(iter(FRAMES.intersection(re.findall(r"\w+", frame))), "") for frame in stack.split(";")]
        if "known" in names:
            seen.stacks[tuple(filter(None, names[names.index("known") :]))] += int(number)


def _rows(label: str, seen: Seen, bare: Seen) -> Iterator[Row]:
    """The rows of one sampler: its cost, its lost samples, its errors."""
    if seen is bare:
        return
    ours = label.endswith("warplens")
    added = 100 * (max(bare.rates) / max(seen.rates) - 1)
    note = f"best of {len(seen.rates)}; by the medians {100 * (statistics.median(bare.rates) / statistics.median(seen.rates) - 1):.1f} %"
    yield Row(f"{label}: time added to a step", added, "%", note=note)
    total = seen.stacks.total()
    yield Row(
        f"{label}: samples of those that were due",
        100 * total / (seen.seconds * HZ),
        "%",
        note=f"{total} samples",
    )
    impossible = sum(
        n
        for stack, n in seen.stacks.items()
        if any(b not in CALLS.get(a, ()) for a, b in itertools.pairwise(stack))
    )
    yield Row(
        f"{label}: impossible stacks",
        100 * impossible / max(1, total),
        "%",
        budget=1.0 if ours else None,
        budget_on="value",
    )
    parts = Counter[str]()
    for stack, number in seen.stacks.items():
        if len(stack) > 2:
            parts[stack[2]] += number
    apart = (
        sum(
            abs(parts[name] / max(1, parts.total()) - seen.truth[name] / seen.truth.total()) for name in PARTS
        )
        / 2
    )
    what = "distance of its shares from the program's own clocks"
    yield Row(
        f"{label}: {what}",
        100 * apart,
        "%",
        budget=4.0 if ours else None,
        budget_on="value",
        note="total variation",
    )
