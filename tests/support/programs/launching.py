"""Running the command line as users do: in a process of its own, with a real program under it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, TypeVar

from warplens.report import open as open_report

Result = TypeVar("Result")
SRC = Path(__file__).resolve().parents[3] / "src"
COMMAND = (sys.executable, "-m", "warplens")

# A "#!" line cannot name an interpreter whose path has a space in it; to Python, the second line is a string.
SHEBANG = f'''#!/bin/sh
"exec" "{sys.executable}" "$0" "$@"
'''

# The program's name for what it does: ranges, then whatever the test adds.
RANGES = """
import os, signal, sys, time
from warplens import nvtx
with nvtx.annotate("outer"):
    for number in range(10):
        with nvtx.annotate("inner"):
            pass
"""


def environment(**extra: str) -> dict[str, str]:
    """Return our environment without traces of other launchers, with `warplens` importable."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "WARPLENS_", "NVTX_", "SLURM_", "PMIX_", "OMPI_", "TORCHELASTIC_"))
    }
    return {**kept, "PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1", **extra}


def light(words: Sequence[str | Path]) -> tuple[str | Path, ...]:
    """Return `words` with `--light` where they begin a recording: what they ask for beside it is recorded all the same."""
    return (words[0], "--light", *words[1:]) if words[:1] in (("profile",), ("launch",)) else tuple(words)


def warplens(
    *words: str | Path, cwd: Path, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run `warplens WORDS` in `cwd` and return how it went; a recording that asks for nothing else is one of NVTX and CUDA."""
    return subprocess.run(
        [*COMMAND, *map(str, light(words))],
        cwd=cwd,
        env=env or environment(),
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
        **options,
    )


def program(path: Path, text: str = "") -> Path:
    """Write a Python program that records ranges `outer` and `inner`, then runs `text`; return its path, executable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{SHEBANG}{RANGES}{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


def info(report: Path) -> dict[str, Any]:
    """Return the parts, row counts, processes and diagnostics of a report; opening it finishes what is unfinished."""
    with open_report(report) as opened:
        return {
            "parts": [asdict(manifest) for manifest in opened.manifests],
            "tables": opened.tables,
            "processes": opened.table("processes").to_pylist(),
            "diagnostics": opened.table("diagnostics").to_pylist(),
        }


def codes(report: Path) -> list[str]:
    """Return the codes of a report's diagnostics."""
    return [row["code"] for row in info(report)["diagnostics"]]


def start_profile(cwd: Path, *words: str | Path) -> subprocess.Popen[str]:
    """Start `warplens profile -o x WORDS` in `cwd`, in a session of its own, with its output in pipes."""
    return subprocess.Popen(
        [*COMMAND, "profile", "--light", "-o", "x", *map(str, words)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> None:
    """Wait until `condition` holds; AssertionError naming `what` if it does not."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.01)


def heard(stream: IO[str], text: str) -> str:
    """Read lines until one has `text` in it, and return them; AssertionError with what was said if none comes."""
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        line = stream.readline()
        assert line, f"{text!r} was not said: {''.join(lines)}"
        lines.append(line)
    return "".join(lines)


def given_time(run: Callable[[float], Result], enough: Callable[[Result], bool], seconds: float) -> Result:
    """Run something that must get so far within `seconds`; where a busy machine did not let it, with five times as long, twice."""
    for longer in (1, 5, 25):
        result = run(seconds * longer)
        if enough(result):
            break
    return result


def alive(pid: int) -> bool:
    """Say whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
