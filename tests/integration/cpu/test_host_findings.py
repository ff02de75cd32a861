"""Small programs with a planted mistake and their fixed twins, for the rules of the host that the examples do not show."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment
from tests.support.thorough import few
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge

_CHANCES = 3  # a busy machine may add to one of two runs what the tolerance does not allow
# Of wall time, which on a busy machine is mostly others': the twins are five digits apart.
_OPTIONS = {"profiler_overhead": {"least": 0.1}}
READS = """
import os, sys, threading, time
from warplens import nvtx
os.mkfifo("file")
reads = 1 if "--fix" in sys.argv else 20
def disk():
    with open("file", "wb", buffering=0) as out:
        for _ in range(reads):
            time.sleep(0.03)
            out.write(bytes(100))
threading.Thread(target=disk).start()
kept = None
with open("file", "rb", buffering=0) as source:
    for _ in range(20):
        with nvtx.annotate("item"):
            if kept is None or "--fix" not in sys.argv:
                kept = os.read(source.fileno(), 100)
            time.sleep(0.005)
"""
IMPORTS = """
import sys, time
from warplens import nvtx
with open("heavy_part.py", "w") as module:
    module.write("import time; time.sleep(0.5)")
sys.path.insert(0, ".")
if "--fix" in sys.argv:
    import heavy_part
for _ in range(8):
    with nvtx.annotate("step"):
        import heavy_part
        time.sleep(0.02)
"""
UNPOPPED = """
import sys
from warplens import nvtx
for number in range(6):
    nvtx.push_range("parse")
    try:
        if number % 2:
            raise ValueError(number)
        nvtx.pop_range()
    except ValueError:
        if "--fix" in sys.argv:
            nvtx.pop_range()
"""
TINY = """
import sys
from warplens import nvtx
with nvtx.annotate("work"):
    if "--fix" in sys.argv:
        with nvtx.annotate("all of it"):
            for _ in range(2_000_000): pass
    else:
        for _ in range(2_000_000):
            with nvtx.annotate("tiny"): pass
"""


@dataclass(frozen=True)
class Planted:
    """A program, what records it, and what must be found; `measured`: name of the ranges whose time the fix makes shorter."""

    text: str
    sources: str
    rules: tuple[str, ...]
    measured: str | None = None


PLANTED = {
    "slow_file_reads": Planted(READS, "nvtx,osrt", ("slow_file_reads",), "item"),
    "late_imports": Planted(IMPORTS, "nvtx,import", ("late_imports", "first_iterations"), "step"),
    "nvtx_mistakes": Planted(UNPOPPED, "nvtx", ("nvtx_mistakes",)),
    "profiler_overhead": Planted(TINY, "nvtx", ("profiler_overhead",)),
}

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]


def record(folder: Path, planted: Planted, *words: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(planted.text, encoding="utf-8")
    command = [
        *COMMAND,
        "profile",
        "--light",
        "-q",
        "-o",
        "run",
        "-t",
        planted.sources,
        "--",
        sys.executable,
        "program.py",
        *words,
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "run.warplens"


def spent(report: Report, name: str) -> int:
    (row,) = report.sql(
        'SELECT sum("end" - start)::BIGINT AS ns FROM nvtx_ranges WHERE message = $name', {"name": name}
    ).to_pylist()
    return int(row["ns"])


def looked_at(folder: Path, planted: Planted) -> str:
    """Record both twins and ask; returns what is wrong, empty if nothing is."""
    with (
        open_report(record(folder / "slow", planted)) as slow,
        open_report(record(folder / "fast", planted, "--fix")) as fast,
    ):
        found = {finding.rule: finding for finding in judge(slow, Selection(), options=_OPTIONS).findings}
        left = judge(fast, Selection(), options=_OPTIONS)
        if set(planted.rules) - set(found):
            return f"not found: {set(planted.rules) - set(found)}"
        assert set(planted.rules) <= set(left.silent) | {finding.rule for finding in left.findings}, (
            "the twin can be judged, too"
        )
        more = [
            finding for finding in left.findings if finding.rule not in ("sleeping", "startup")
        ]  # they sleep in place of work
        if more:
            return "found in the twin: " + "; ".join(f"{finding.rule}: {finding.title}" for finding in more)
        for finding in (found[rule] for rule in planted.rules if planted.measured):
            won = spent(slow, str(planted.measured)) - spent(fast, str(planted.measured))
            assert finding.bound is not None
            assert finding.estimate is not None
            if not finding.estimate / 2 <= won <= 1.1 * finding.bound:
                return f"{finding.rule}: the fix won {won / 1e6:.0f} ms; {finding.estimate / 1e6:.0f} ms to {finding.bound / 1e6:.0f} ms"
        return ""


@pytest.mark.parametrize("name", few(PLANTED, 2))
def test_the_mistake_is_found_and_its_fix_is_right(name: str, tmp_path: Path) -> None:
    wrong = []
    for chance in range(_CHANCES):
        wrong.append(looked_at(tmp_path / str(chance), PLANTED[name]))
        if not wrong[-1]:
            return
    pytest.fail("\n".join(wrong))
