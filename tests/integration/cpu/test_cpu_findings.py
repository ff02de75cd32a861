"""Each planted mistake is found, costs what the finding says, and is gone in the fixed twin.

What is won is measured by the programs' own ranges. The planted costs are waits, so that they do not depend on the machine; what a busy
machine adds to one of two runs can be more than the tolerance all the same, so each program has three chances.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment
from tests.support.thorough import alike
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cpu_mistakes"
FOUND = {
    "lock_convoy": ("lock_convoy", "Ledger.note (lock_convoy.py)"),
    "gil_hog": ("gil_contention", "thread"),
    "gc_pause": ("gc_pauses", "garbage collector"),
    "slow_reader": ("data_loader", "wait for batch"),
    "blocked_socket": ("blocked_on_sockets", "recv on thread"),
}
# Each wait must be long beside what a busy machine makes of a request.
WORDS = {"gil_hog": ("--ms", "300", "--items", "5")}
_CHANCES = 3
# The examples sleep, and make objects, in place of work, and they are short; others may use the machine.
_IN_PLACE = ("sleeping", "hot_function", "waits_for_cpu", "startup")

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]


def record(out: Path, name: str, *words: str) -> None:
    options = ("-t", "nvtx,osrt,gc,gil", "--sample=process-tree", "--python-sampling=true")
    command = [
        sys.executable,
        "-m",
        "warplens",
        "profile",
        "--light",
        "-q",
        "-o",
        str(out),
        *options,
        "--",
        sys.executable,
        str(EXAMPLES / f"{name}.py"),
        *words,
    ]
    done = subprocess.run(
        command, env=environment(COLUMNS="120"), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def sums(report: Report, name: str) -> tuple[int, int, int]:
    """How many ranges of a name there are, their total, and how long it was from the first to the last (ns)."""
    text = 'SELECT count(*)::BIGINT, sum("end" - start)::BIGINT, (max("end") - min(start))::BIGINT FROM nvtx_ranges WHERE message = $name'
    (row,) = report.sql(text, {"name": name}).to_pylist()
    count, total, whole = row.values()
    return count, total, whole


def saved(name: str, slow: Report, fast: Report) -> float:
    """What the fix won, ns, for the same work."""
    if name == "lock_convoy":
        return sums(slow, "item")[2] - sums(fast, "item")[2]
    if (
        name == "slow_reader"
    ):  # the queue runs dry at the end: what lies between the steps is all that is waited
        return sums(slow, "wait for batch")[2] - sums(fast, "wait for batch")[2]
    if name == "gil_hog":  # both go on for the same time: more requests are served
        count, total, _ = sums(slow, "request")
        other, fixed, _ = sums(fast, "request")
        return total - count * fixed / other
    of = {"gc_pause": "request", "blocked_socket": "ask"}[name]
    return sums(slow, of)[1] - sums(fast, of)[1]


def looked_at(folder: Path, name: str) -> str:
    """Record both twins and ask; returns what is wrong, empty if nothing is."""
    record(folder / "slow", name, *WORDS.get(name, ()))
    record(folder / "fast", name, *WORDS.get(name, ()), "--fix")
    with open_report(folder / "slow.warplens") as slow, open_report(folder / "fast.warplens") as fast:
        findings = judged(slow)
        assert findings, "the mistake is not found"
        rule, subject = FOUND[name]
        if sys.version_info < (3, 11):
            subject = subject.removeprefix("Ledger.")  # code has no qualified names yet
        (planted,) = (finding for finding in findings if finding.rule == rule)
        assert subject in planted.subject
        assert planted.bound is not None
        assert planted.estimate is not None
        assert planted.evidence
        won = saved(name, slow, fast)
        if not planted.estimate / 2 <= won <= 1.1 * planted.bound:
            return f"{name}: the fix won {won / 1e6:.0f} ms; estimate {planted.estimate / 1e6:.0f} ms, bound {planted.bound / 1e6:.0f} ms"
        if planted.severity != "high" or findings[0].rule != rule:
            return f"{name}: {said(findings)}"
        left = judged(fast)
        return f"{name}, fixed: {said(left)}" if left else ""


def judged(report: Report) -> tuple[Finding, ...]:
    return tuple(finding for finding in judge(report, Selection()).findings if finding.rule not in _IN_PLACE)


def said(findings: tuple[Finding, ...]) -> str:
    return "; ".join(f"[{finding.severity}] {finding.rule}: {finding.title}" for finding in findings)


@pytest.mark.parametrize("name", alike(FOUND, "lock_convoy", "blocked_socket"))
def test_the_mistake_is_found_and_costs_what_is_said(name: str, tmp_path: Path) -> None:
    wrong = []
    for chance in range(_CHANCES):
        wrong.append(looked_at(tmp_path / str(chance), name))
        if not wrong[-1]:
            return
    pytest.fail("\n".join(wrong))
