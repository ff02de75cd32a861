"""Programs that annotate where and as nobody would: nothing breaks, and what can be recorded is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment, warplens
from tests.support.reports.querying import rows
from tests.support.thorough import alike

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]

LIBRARIES = [pytest.param("nvtx", marks=pytest.mark.require("nvtx")), "warplens.nvtx"]


def record(folder: Path, program: str, *before: str, library: str = "warplens.nvtx") -> tuple[str, Path]:
    """Run `program`, in which `nvtx` is the library, under `warplens profile`; return its output and the report."""
    (folder / "program.py").write_text(f"import {library} as nvtx\n{program}", encoding="utf-8")
    report = folder / "run.warplens"
    done = warplens(
        "profile",
        "--light",
        "-q",
        "-f",
        "-o",
        report,
        *before,
        sys.executable,
        "-X",
        "faulthandler",
        "program.py",
        cwd=folder,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, report


def complaints(report: Path) -> list[str]:
    """The codes of what the report complains about."""
    return [
        code
        for (code,) in rows(report, "SELECT code FROM diagnostics WHERE severity <> 'info' ORDER BY code")
    ]


@pytest.mark.parametrize("library", alike(LIBRARIES, "warplens.nvtx"))
def test_a_hundred_thousand_names(library: str, tmp_path: Path) -> None:
    program = """
for number in range(100_000):
    with nvtx.annotate(f"message number {number}"):
        pass
"""
    _, report = record(tmp_path, program, library=library)
    distinct = "SELECT count(*)::INT, count(DISTINCT message)::INT, min(message), max(depth) FROM nvtx_ranges"
    assert rows(report, distinct) == [(100_000, 100_000, "message number 0", 0)]
    assert complaints(report) == []


@pytest.mark.parametrize("library", alike(LIBRARIES, "warplens.nvtx"))
def test_a_name_of_a_megabyte_is_cut_and_told(library: str, tmp_path: Path) -> None:
    _, report = record(
        tmp_path, "with nvtx.annotate('x' * (1 << 20)):\n    nvtx.mark('inside')\n", library=library
    )
    ((length, first),) = rows(report, "SELECT length(message)::INT, message[:10] FROM nvtx_ranges")
    assert 1000 <= length < 1 << 20
    assert first == "x" * 10
    assert complaints(report) == ["cut-names"]


def test_names_that_no_c_string_can_hold(tmp_path: Path) -> None:
    program = r"""
for name in ("nul\0inside", "\0", "half \ud800 surrogate", "\U0010ffff", "a\nb\tc\x1b[31m", ""):
    with nvtx.annotate(name):
        pass
    nvtx.mark(name)
"""
    _, report = record(tmp_path, program)
    said = [message for (message,) in rows(report, "SELECT message FROM nvtx_ranges ORDER BY start")]
    assert len(said) == 6
    assert "nul" in said[0]
    assert "surrogate" in said[2]
    assert said[3:5] == ["\U0010ffff", "a\nb\tc\x1b[31m"]
    assert [message for (message,) in rows(report, "SELECT message FROM nvtx_marks ORDER BY start")] == said


@pytest.mark.parametrize("library", alike(LIBRARIES, "warplens.nvtx"))
def test_ten_thousand_ranges_within_each_other(library: str, tmp_path: Path) -> None:
    program = """
from contextlib import ExitStack
with ExitStack() as stack:
    for number in range(10_000):
        stack.enter_context(nvtx.annotate("level", payload=number))
with nvtx.annotate("after"):
    pass
"""
    _, report = record(tmp_path, program, library=library)
    nested = """
        SELECT count(*)::INT, max(r.depth), count(*) FILTER (r.depth <> r.payload_int)::INT,
               count(*) FILTER (p.payload_int = r.payload_int - 1)::INT
        FROM nvtx_ranges r LEFT JOIN nvtx_ranges p ON p.id = r.parent WHERE r.message = 'level'"""
    assert rows(report, nested) == [(10_000, 9_999, 0, 9_999)]
    assert rows(report, "SELECT depth, unfinished FROM nvtx_ranges WHERE message = 'after'") == [(0, False)]
    assert complaints(report) == []


@pytest.mark.parametrize("library", alike(LIBRARIES, "nvtx"))
def test_pops_that_match_nothing(library: str, tmp_path: Path) -> None:
    program = """
import threading
for _ in range(100):
    nvtx.pop_range()
    nvtx.pop_range("lib")
    nvtx.get_domain("other").pop_range()
with nvtx.annotate("outer"):
    nvtx.pop_range("lib")
    nvtx.push_range("left open", domain="lib")
    worker = threading.Thread(target=nvtx.pop_range, args=("lib",))
    worker.start()
    worker.join()
    with nvtx.annotate("inner"):
        pass
nvtx.pop_range()
nvtx.pop_range()
with nvtx.annotate("last"):
    pass
"""
    _, report = record(tmp_path, program, library=library)
    assert rows(report, "SELECT message, domain, depth, unfinished FROM nvtx_ranges ORDER BY start") == [
        ("outer", None, 0, False),
        ("left open", "lib", 1, True),  # another thread cannot close it
        ("inner", None, 2, False),
        ("last", None, 2, False),  # within what was left open
    ]
    assert [code for code in complaints(report) if code != "unmatched-pops"] == []


@pytest.mark.parametrize("library", alike(LIBRARIES, "warplens.nvtx"))
def test_a_thousand_domains_and_five_thousand_categories(library: str, tmp_path: Path) -> None:
    program = """
for number in range(1_000):
    with nvtx.annotate("same", domain=f"domain {number}", category=f"category of {number}"):
        pass
for number in range(5_000):
    nvtx.mark("mark", domain="many", category=f"category {number}")
"""
    _, report = record(tmp_path, program, library=library)
    per_domain = "SELECT count(*)::INT, count(DISTINCT domain)::INT, bool_and('category of ' || domain[8:] = category) FROM nvtx_ranges"
    assert rows(report, per_domain) == [(1_000, 1_000, True)]
    assert rows(report, "SELECT count(DISTINCT category)::INT, max(category_id)::INT FROM nvtx_marks") == [
        (5_000, 5_000)
    ]
    assert complaints(report) == []


def test_annotations_where_python_calls_back(tmp_path: Path) -> None:
    program = """
import atexit, gc, signal, sys, threading, time, weakref

class Final:
    def __del__(self):
        with nvtx.annotate("in __del__"):
            nvtx.mark("in __del__")

class Cycle(Final):
    def __init__(self):
        self.me = self

def at_exit():
    with nvtx.annotate("at exit"):
        pass

def handler(number, frame):
    with nvtx.annotate("in handler"):
        pass

atexit.register(at_exit)
Final()
Cycle()
gc.collect()
kept = Final()
weakref.finalize(kept, nvtx.mark, "in finalize")
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
end = time.monotonic() + 0.3
while time.monotonic() < end:
    with nvtx.annotate("interrupted"):
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
sys.settrace(None)
print("ran")
"""
    out, report = record(tmp_path, program)
    assert out == "ran\n"
    once = "message IN ('at exit', 'in __del__') GROUP BY message ORDER BY message"
    assert rows(report, f"SELECT message, count(*)::INT FROM nvtx_ranges WHERE {once}") == [
        ("at exit", 1),
        ("in __del__", 3),
    ]
    assert rows(report, "SELECT count(*) > 0 FROM nvtx_ranges WHERE message = 'in handler'") == [(True,)]
    assert rows(report, "SELECT count(*)::INT FROM nvtx_ranges WHERE unfinished OR depth > 1") == [(0,)]
    assert complaints(report) == []


@pytest.mark.parametrize("library", alike(LIBRARIES, "warplens.nvtx"))
def test_threads_that_still_annotate_while_python_ends(library: str, tmp_path: Path) -> None:
    program = """
import threading, time
counts = [0] * 4
def forever(number):
    while True:
        with nvtx.annotate("in daemon"):
            nvtx.mark("x")
        counts[number] += 1
for number in range(4):
    threading.Thread(target=forever, args=(number,), daemon=True).start()
while min(counts) < 100:
    time.sleep(0.05)
print("ends")
"""
    out, report = record(tmp_path, program, library=library)
    assert out == "ends\n"
    ((ranges, marks),) = rows(
        report, "SELECT (SELECT count(*)::INT FROM nvtx_ranges), (SELECT count(*)::INT FROM nvtx_marks)"
    )
    assert ranges >= 400
    assert abs(ranges - marks) <= 4
    assert complaints(report) == []


def test_an_exit_in_the_middle_of_everything(tmp_path: Path) -> None:
    program = """
import os, threading
nvtx.push_range("never popped")
nvtx.start_range("never ended")
with nvtx.annotate("around the end"):
    threading.Thread(target=os._exit, args=(0,)).start()
    while True:
        with nvtx.annotate("inside"):
            pass
"""
    _, report = record(tmp_path, program)
    open_ones = "SELECT message FROM nvtx_ranges WHERE unfinished AND message <> 'inside' ORDER BY message"
    assert rows(report, open_ones) == [("around the end",), ("never ended",), ("never popped",)]


SUBINTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = '''
import sys
sys.path[:0] = {path!r}
import warplens.nvtx as nvtx
print("recording" if nvtx.enabled() else "silent", flush=True)
with nvtx.annotate("inside", domain="sub"):
    nvtx.mark("mark")
@nvtx.annotate()
def decorated():
    pass
decorated()
'''.format(path=sys.path)
with nvtx.annotate("main"):
    for legacy in (True, False):
        try:
            made = interpreters.create("legacy") if legacy else interpreters.create()
        except TypeError:
            made = interpreters.create(isolated=not legacy)
        try:
            failed = interpreters.run_string(made, code)
        except BaseException as error:
            failed = error
        if failed is not None:
            print("failed", failed)
        interpreters.destroy(made)
print("ran")
"""


def test_subinterpreters_are_recorded_or_left_alone(tmp_path: Path) -> None:
    out, report = record(tmp_path, SUBINTERPRETERS)
    *said, last = out.splitlines()
    assert last == "ran"
    assert set(said) <= {
        "recording",
        "silent",
    }  # silent: one with a GIL of its own, which the binding declines
    assert len(said) == 2
    count = rows(report, "SELECT count(*)::INT FROM nvtx_ranges WHERE message IN ('inside', 'decorated')")
    assert count == [(2 * said.count("recording"),)]
    assert complaints(report) == []
