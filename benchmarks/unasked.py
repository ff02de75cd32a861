"""Cost of a run with default options, beside the plain program and `--light`: a Python loop, a NumPy loop, whole commands.

Each program does fixed work and prints the CPU time of its whole process, threads of ours included; all take turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Row

_LOOPS = {
    "pure Python loop": "for _ in range({n} * 60): sum(i * i % 7 for i in range(5000))",
    "NumPy loop": "a = numpy.arange(200_000.0)\nfor _ in range({n} * 100): a = numpy.sqrt(a * a + 1.0)",
}
_PROGRAM = "import time, numpy\nbegin = time.process_time()\n{loop}\nprint(time.process_time() - begin)\n"
_OURS = [sys.executable, "-m", "warplens", "profile", "-q", "-f", "-o"]


def run(quick: bool) -> Iterator[Row]:
    """Measure it all; `quick`: shorter, for a look."""
    size, rounds = (20, 3) if quick else (40, 7)
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        report = str(Path(name) / "x")
        ways = {"nothing": [], "light": [*_OURS, report, "--light"], "default": [*_OURS, report]}
        for what, loop in _LOOPS.items():
            program = [sys.executable, "-c", _PROGRAM.format(loop=loop.format(n=size))]
            taken: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(rounds):
                for way, words in ways.items():
                    taken[way].append(
                        float(
                            subprocess.run(
                                [*words, *program], check=True, capture_output=True, text=True
                            ).stdout
                        )
                    )
            for way, budget in (("light", None), ("default", 1.005)):
                ratio = statistics.median(
                    one / plain for one, plain in zip(taken[way], taken["nothing"], strict=True)
                )
                plain = statistics.median(taken["nothing"])
                yield Row(
                    f"{what}, {way}",
                    ratio * plain,
                    "s CPU",
                    "the program alone",
                    plain,
                    budget,
                    note=f"median of {rounds} pairs",
                )
        yield from _whole(ways, rounds)


def _whole(ways: dict[str, list[str]], rounds: int) -> Iterator[Row]:
    """CPU time of whole commands with a program that does nothing: on a busy machine wall time says little."""
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, words in ways.items():
            before = _children()
            subprocess.run(
                [*[word for word in words if word != "-q"], sys.executable, "-c", "pass"],
                check=True,
                capture_output=True,
            )
            spent[way].append(_children() - before)
    plain = statistics.median(spent["nothing"])
    for way in ("light", "default"):
        yield Row(
            f"python -c pass, whole command, {way}",
            statistics.median(spent[way]),
            "s CPU",
            "the program alone",
            plain,
        )


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
