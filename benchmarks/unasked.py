"""Cost of a run with default options, beside the plain program and `--light`: loops and whole commands.

Each program does fixed work and prints the CPU time of its whole process, threads of ours included; all take turns. Trees of programs that
are not Python's (a shell loop, `make -j2` of C files) count the CPU time of all that they start, without that of our launcher.
"""

from __future__ import annotations

import compileall
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness import Row

_LOOPS = {
    "pure Python loop": "for _ in range({n} * 60): sum(i * i % 7 for i in range(5000))",
    "NumPy loop": "a = numpy.arange(200_000.0)\nfor _ in range({n} * 100): a = numpy.sqrt(a * a + 1.0)",
}
_PROGRAM = "import time, numpy\nbegin = time.process_time()\n{loop}\nprint(time.process_time() - begin)\n"
_SOURCE = Path(__file__).resolve().parent.parent / "src"
_WHOLE_BUDGET_S = 0.25
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
        yield from _trees(Path(name), ways, rounds, files=10 if quick else 40)
        yield from _whole(ways, rounds)


_SHELL = "for i in $(seq {n}); do /bin/true; done; times"
_MAKE = "make -s -j2 -C {folder} clean all; times"
_UNIT = "#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n" + "".join(
    f"double f{i}(double x) {{ double s = 0; for (int i = 0; i < {i + 9}; ++i) s += sqrt(x + i) * {i}; return s; }}\n"
    for i in range(300)
)
_MAKEFILE = """SOURCES = $(wildcard *.c)
CFLAGS = -O2
all: $(SOURCES:.c=.o)
clean:
\trm -f *.o
"""


def _trees(folder: Path, ways: dict[str, list[str]], rounds: int, files: int) -> Iterator[Row]:
    """CPU time of what shells and `make` start, as the shell itself counts it."""
    project = folder / "project"
    project.mkdir()
    (project / "Makefile").write_text(_MAKEFILE)
    for number in range(files):
        (project / f"unit{number}.c").write_text(_UNIT.replace(" f", f" unit{number}_f"))
    commands = {
        "shell loop of 1,000 commands": _SHELL.format(n=1000),
        f"make -j2 of {files} C files": _MAKE.format(folder=project),
    }
    for what, command in commands.items():
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, words in ways.items():
                done = subprocess.run(
                    [*words, "bash", "-c", command], check=True, capture_output=True, text=True
                )
                taken[way].append(sum(map(_seconds, done.stdout.splitlines()[-1].split())))
        for way in ("light", "default"):
            beside = "nothing" if way == "light" else "light"
            ratio = statistics.median(
                one / other for one, other in zip(taken[way], taken[beside], strict=True)
            )
            base = statistics.median(taken[beside])
            yield Row(
                f"{what}, {way}",
                ratio * base,
                "s CPU",
                "the program alone" if way == "light" else "--light",
                base,
                1.02 if way == "default" else None,
                note=f"median of {rounds} pairs",
            )


def _seconds(text: str) -> float:
    """Of what `times` prints: 0m1.250s."""
    minutes, _, seconds = text.rstrip("s").partition("m")
    return 60 * float(minutes) + float(seconds)


def _whole(ways: dict[str, list[str]], rounds: int) -> Iterator[Row]:
    """CPU time and wall time of whole commands with a program that does nothing; on a busy machine wall time says little."""
    compileall.compile_dir(_SOURCE, quiet=2)  # as pip does
    spent: dict[str, list[float]] = {way: [] for way in ways}
    passed: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, words in ways.items():
            before, begin = _children(), time.perf_counter()
            subprocess.run(
                [*[word for word in words if word != "-q"], sys.executable, "-c", "pass"],
                check=True,
                capture_output=True,
            )
            passed[way].append(time.perf_counter() - begin)
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
        more = statistics.median(
            one - alone for one, alone in zip(passed[way], passed["nothing"], strict=True)
        )
        yield Row(
            f"python -c pass, whole command by the clock, more with {way}",
            more,
            "s",
            "the program alone",
            statistics.median(passed["nothing"]),
            _WHOLE_BUDGET_S if way == "default" else None,
            "value",
        )


def _children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
