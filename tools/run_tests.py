"""Runs pytest over the parts of tests/.

What fails runs once more, alone, and what only then passes is listed as unsteady.

As CPython's `regrtest --rerun` does it: one failure in thousands of tests may be a race of the test, or of the product,
that no second run on this machine would show. The run reports it, and it does not hide the rest. More than a few failures are
no chance, and stand. `python tools/run_tests.py unit [integration] [-- words for pytest]`; the exit status is pytest's.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = 5  # failures that get a second chance
FAILED, NO_TESTS = 1, 5  # pytest's exit statuses
MEMORY = "/dev/shm"
ROOM = 4 << 30  # bytes that must be free there

# Thousands of small reports: each goes with its test, unless that fails.
_FORGET = ["-o", "tmp_path_retention_policy=failed"]
_UNIT = ["-n", "auto", "--maxprocesses=4", "--dist", "worksteal", *_FORGET, "tests/unit", "tests/conformance"]
# Files side by side, those first that take longest: most of their time they wait for programs. JOBS=0: one after the other.
_INTEGRATION = (
    f"-n {os.environ.get('JOBS', '4')} --dist loadfile --no-loadscope-reorder tests --ignore=tests/unit "
    f"--ignore=tests/conformance"
).split()
# What depends on which CPython is recorded: how its stacks, locks, collections, imports, tasks and exceptions are read, the binding
# behind `warplens.nvtx`, and recording itself. Not what reads reports, nor what records programs without Python.
_RECORDING = [
    "tests/unit/nvtx",
    "tests/unit/recording",
    *(
        next(ROOT.glob(f"tests/integration/*/test_{name}.py")).relative_to(ROOT).as_posix()
        for name in (
            "python_sampling",
            "python_traces",
            "python_hooks",
            "python_free_threaded",
            "free_threaded_binding",
            "sampling_profiler",
            "async_stacks",
            "record",
            "cpu_odd_programs",
            "cpu_real_programs",
            "profile",
            "record_survival",
            "cpu_servers",
            "capture_windows_python",
            "os_calls",
            "python_layouts",
            "cpu_stats",
            "cpu_examples",
            "cpu_findings",
            "cpu_symbols",
            "nvtx_chain",
            "perf",
            "tasks",
            "example",
        )
    ),
]
PARTS = {
    "check": [*_UNIT, "-m", "not slow and not exhaustive"],
    "unit": [*_UNIT, "-m", "not exhaustive"],
    "integration": [*_INTEGRATION, "-m", "not exhaustive"],
    "recording": [*["-n", "3", "--dist", "loadfile"], *_FORGET, *_RECORDING, "-m", "not exhaustive"],
    "all-unit": _UNIT,
    "all-integration": _INTEGRATION,
}


def run(words: list[str]) -> tuple[int, list[str]]:
    """Run pytest with these words, and what failed once more.

    The exit status and the ids of tests that only then passed.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "pytest", "-q", *words, "-o", f"cache_dir={folder}/cache"]
        print(*words[1:-2], flush=True)
        # pytest keeps the assertions that it has rewritten
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        if "tests/unit" in words and _in_memory():
            kept.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
        status = subprocess.run(words, env=kept).returncode
        failed = _failed(Path(folder)) if status == FAILED else []
        # A file that could not be read is no test that failed by chance.
        if not failed or len(failed) > MOST or not all("::" in test for test in failed):
            return status, []
        print(f"\n{len(failed)} failed; once more, alone:", flush=True)
        again = Path(folder) / "again.xml"
        status = subprocess.run(
            [*words, "--last-failed", "-n", "0", "--dist", "no", f"--junitxml={again}"], env=kept
        ).returncode
        if status != 0 or _passed(again) < len(failed):
            return status or FAILED, []
        return 0, failed


def _in_memory() -> bool:
    """Whether there is room for what unit tests write, which a disk would take minutes to forget, and programs built there may run."""
    try:
        state = os.statvfs(MEMORY)
    except OSError:
        return False
    return (
        os.access(MEMORY, os.W_OK)
        and state.f_bavail * state.f_frsize >= ROOM
        and not state.f_flag & os.ST_NOEXEC
    )


def _failed(folder: Path) -> list[str]:
    try:
        return sorted(
            json.loads((folder / "cache" / "v" / "cache" / "lastfailed").read_text(encoding="utf-8"))
        )
    except FileNotFoundError:
        return []


def _passed(report: Path) -> int:
    told = {"failure", "error", "skipped"}
    return sum(
        told.isdisjoint(part.tag for part in case) for case in ElementTree.parse(report).iter("testcase")
    )


def main(arguments: list[str]) -> int:
    """Run the named parts, one after the other, until one fails."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parts, words = arguments[:at], arguments[at + 1 :]
    if not parts or not set(parts) <= set(PARTS):
        sys.exit(f"usage: run_tests.py {' | '.join(PARTS)} ... [-- words for pytest]")
    # Programs that tests start write no bytecode: made here once, each of hundreds starts in half the time.
    compileall.compile_dir(ROOT / "src", quiet=2)
    unsteady: list[str] = []
    statuses = []
    for part in parts:
        status, found = run([*PARTS[part], *words])
        unsteady += found
        statuses.append(status)
        if status not in ((0, NO_TESTS) if words else (0,)):
            break
    for test in unsteady:
        print(f"unsteady: {test} failed, and passed when it ran again, alone: find out why", flush=True)
    # Words may choose tests that are all in one part.
    return 0 if words and 0 in statuses and statuses[-1] == NO_TESTS else statuses[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
