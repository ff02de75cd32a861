"""Cost of the Python hooks: per GIL handover, collection, traced function, untraced function, audit event.

The same small program runs bare, bare again, and with each trace, in turns; each figure is the least CPU time of its rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from harness import Row

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_WORK = """
import gc, json, os, sys, time
from timed import traced, other
gc.disable(); gc.collect(); gc.freeze()
null = os.open(os.devnull, os.O_WRONLY)
def best(work, count):
    rounds = []
    for _ in range(9):
        start = time.thread_time_ns()
        work(count)
        rounds.append((time.thread_time_ns() - start) / count)
    return min(rounds)
def write(count):
    for _ in range(count): os.write(null, b"x")
def collect(count):
    for _ in range(count): gc.collect(0)
def call_traced(count):
    for _ in range(count): traced()
def call_other(count):
    for _ in range(count): other()
def identify(count):
    for _ in range(count): id(count)
print(json.dumps({"write": best(write, 20000), "collect": best(collect, 2000), "traced": best(call_traced, 20000),
                  "other": best(call_other, 20000), "id": best(identify, 20000)}))
"""
_MODULE = "def traced(): pass\ndef other(): pass\n"


def _measure(python: str, turns: int) -> dict[str, dict[str, float]]:
    from tests.support.programs.python_running import FUNCTIONS, GC, GIL, PythonPrograms

    found: dict[str, dict[str, float]] = defaultdict(dict)
    with tempfile.TemporaryDirectory() as folder:
        programs = PythonPrograms(Path(folder))
        (programs.folder / "timed.py").write_text(_MODULE)
        (programs.folder / "work.py").write_text(_WORK)
        for _ in range(turns):
            for name, flags in (
                ("bare", 0),
                ("bare again", 0),
                ("gil", GIL),
                ("gc", GC),
                ("functions", FUNCTIONS),
            ):
                if flags == 0:
                    text = programs.bare([python, "work.py"]).stdout
                else:
                    capture = programs.capture(flags)
                    (capture.spool / "python_functions.txt").write_text("timed\t\ttraced\n")
                    text = programs.run([python, "work.py"], flags, capture=capture).stdout
                for what, ns in json.loads(text).items():
                    found[name][what] = min(ns, found[name].get(what, ns))
    return found


def _version(python: str) -> str:
    done = subprocess.run(
        [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def run(quick: bool) -> list[Row]:
    """Rows of every CPython of this machine; the last value of each is what the trace adds, beside that of bare to bare."""
    from tests.support.programs.python_running import interpreters

    rows = []
    for python in interpreters():
        found = _measure(python, 1 if quick else 5)
        version = _version(python)
        for trace, what, label, most in (
            ("gil", "write", "GIL: os.write", 60.0),
            ("gc", "collect", "gc.collect(0)", 1000.0),
            ("functions", "traced", "a traced function", None),
            ("functions", "other", "a function that is not traced", None),
            ("functions", "id", "id(), with an audit hook", None),
        ):
            bare = found["bare"][what]
            added, noise = found[trace][what] - bare, found["bare again"][what] - bare
            note = f"bare {bare:.0f} ns, A/A {noise:+.1f} ns"
            rows.append(
                Row(f"{version} {label}: added", added, "ns", budget=most, budget_on="value", note=note)
            )
    return rows
