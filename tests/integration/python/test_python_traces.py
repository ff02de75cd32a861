"""What each trace of Python records, in every CPython of this machine, without a launcher."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.programs.launching import warplens
from tests.support.programs.python_running import (
    BOOTSTRAP,
    BRIEF,
    COLLECTION,
    EXCEPTION,
    FUNCTION,
    FUNCTIONS,
    GC,
    GIL,
    HOLD,
    IMPORT,
    IMPORTS,
    NOT_FOUND,
    OLDER,
    PYTHON_CALLS,
    PYTHON_EVENTS,
    TASK,
    WAIT,
    WARNING,
    PythonPrograms,
    PythonRun,
    interpreters,
    is_free_threaded,
    representatives,
    version_of,
)
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
pythons = pytest.mark.parametrize(
    "python", interpreters() or [sys.executable], ids=lambda path: path.replace("/", "_")
)
with_gil = pytest.mark.parametrize(
    "python", representatives(gil=True) or [sys.executable], ids=lambda path: path.replace("/", "_")
)
some_pythons = pytest.mark.parametrize(
    "python", representatives() or [sys.executable], ids=lambda path: path.replace("/", "_")
)


@pytest.fixture
def programs(tmp_path: Path) -> PythonPrograms:
    """Runs programs in `tmp_path`."""
    return PythonPrograms(tmp_path)


_CYCLES = """
import gc, time
gc.disable()
class Node: pass
deadline = 20
longest = (0, 0)
while True:
    for _ in range(300_000):
        one, other = Node(), Node()
        one.other, other.other = other, one
    start = time.monotonic_ns()
    freed = gc.collect()
    took = time.monotonic_ns() - start
    longest = max(longest, (took, freed))
    if took > 300_000_000 or deadline == 0: break
    deadline -= 1
    kept = globals().setdefault("kept", [])
    kept.append([Node() for _ in range(300_000)])
print(*longest)
"""


@some_pythons
def test_a_long_collection(programs: PythonPrograms, python: str) -> None:
    """With its generation, what it freed, and its time."""
    run = programs.run([python, "-c", _CYCLES], GC)
    longest = max(run.spans(COLLECTION), key=lambda span: span["end"] - span["start"])
    took, freed = map(int, run.stdout.split())
    assert (longest["value"], longest["value2"]) == (2, freed)
    assert took / 2 < longest["end"] - longest["start"] <= took


_HOG = """
import ctypes, threading, time
sleep = ctypes.PyDLL(None).usleep
ready = threading.Event()
def wait():
    ready.set()
    for _ in range(200): time.sleep(0.001)
thread = threading.Thread(target=wait)
thread.start()
ready.wait()
sleep(300_000)
thread.join()
print(threading.get_native_id())
"""


@with_gil
def test_a_c_function_that_keeps_the_gil(programs: PythonPrograms, python: str) -> None:
    """It holds it as long as it sleeps, and another thread waits about as long."""
    run = programs.run([python, "-c", _HOG], GIL)
    longest = max(run.gil(HOLD), key=lambda record: record["end"] - record["start"])
    assert longest["tid"] == int(run.stdout)
    assert longest["end"] - longest["start"] >= 300_000_000
    waits = [
        record
        for record in run.gil(WAIT)
        if record["tid"] != longest["tid"] and record["end"] - record["start"] > 200_000_000
    ]
    assert waits


@with_gil
def test_brief_holds_are_summed_up(programs: PythonPrograms, python: str) -> None:
    """Ten thousand system calls are so many holds, whether brief or not."""
    run = programs.run(
        [python, "-c", "import os\nf = os.open('/dev/null', 1)\nfor _ in range(10000): os.write(f, b'x')"],
        GIL,
    )
    holds = sum(record["holds"] for record in run.gil(BRIEF)) + len(run.gil(HOLD))
    assert 10_000 < holds < 12_000
    for record in run.gil(BRIEF):
        assert 0 < record["held_ns"] <= record["end"] - record["start"]
        assert record["holds"] > 0 or record["waits"] > 0


@with_gil
def test_holds_of_different_threads_do_not_overlap(programs: PythonPrograms, python: str) -> None:
    """One has it at a time; 200 threads."""
    code = """
import threading
def work():
    for _ in range(20): sum(range(20000))
threads = [threading.Thread(target=work) for _ in range(200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    run = programs.run([python, "-c", code], GIL)
    holds = sorted((record["start"], record["end"]) for record in run.gil(HOLD))
    assert len({record["tid"] for record in run.gil(HOLD, BRIEF, WAIT)}) > 150
    assert all(end <= start for (_, end), (start, _) in pairwise(holds))


@some_pythons
def test_a_closed_window_records_no_python_event(programs: PythonPrograms, python: str) -> None:
    """Neither GIL nor collections, imports, calls."""
    flags = GIL | GC | IMPORTS | PYTHON_EVENTS | PYTHON_CALLS
    run = programs.run(
        [python, "-c", "import gc, json; gc.collect()"], flags, capture=programs.capture(flags, open=False)
    )
    assert run.status == 0
    assert run.of("gil") + run.of("python_span") == []


@pythons
def test_imports_nest(programs: PythonPrograms, python: str) -> None:
    """A module's span lies within that of who imports it."""
    (programs.folder / "outer.py").write_text(
        "import inner\ntry:\n    import lacking\nexcept ImportError: pass\n"
    )
    (programs.folder / "inner.py").write_text("import time; time.sleep(0.01)\n")
    run = programs.run([python, "-c", "import outer, outer"], IMPORTS)
    spans = {span.name: span for span in run.spans(IMPORT)}
    assert (
        spans["outer"]["start"] <= spans["inner"]["start"] <= spans["inner"]["end"] <= spans["outer"]["end"]
    )
    assert (spans["outer"]["value"], spans["lacking"]["value"]) == (0, 1)
    assert run.names(IMPORT).count("outer") == 1


@pytest.mark.parametrize("python", [python for python in interpreters() if version_of(python) >= (3, 15)])
@pytest.mark.parametrize("how", ["lazy import inner", "lazy from inner import value"])
def test_a_lazy_import_is_recorded_where_it_happens(programs: PythonPrograms, python: str, how: str) -> None:
    """At the first use, within what uses it; and none of the hooks, nor a function that is asked for, is a use."""
    value = "value" if "from" in how else "inner.value"
    (programs.folder / "outer.py").write_text(f"{how}\ndef use(): return {value}\n")
    (programs.folder / "inner.py").write_text("value = 7\n")
    (programs.folder / "user.py").write_text("import outer\nimported = outer.use()\n")
    code = "import sys, outer; early = 'inner' in sys.modules; import user; print(early, user.imported)"
    flags = IMPORTS | PYTHON_EVENTS | PYTHON_CALLS | FUNCTIONS | GC
    capture = programs.capture(flags)
    (capture.spool / "python_functions.txt").write_text("outer\t\tuse\nouter\t\tvalue\n")
    run = programs.run([python, "-c", code], flags, capture=capture)
    assert (run.status, run.stdout) == (0, "False 7\n"), run.stderr
    spans = {span.name: span for span in run.spans(IMPORT)}
    assert (
        spans["outer"]["end"]
        <= spans["user"]["start"]
        <= spans["inner"]["start"]
        <= spans["inner"]["end"]
        <= spans["user"]["end"]
    )
    assert run.names(IMPORT).count("inner") == 1


_MODULE = """
import functools
def plain(x): return x
def decorate(f):
    @functools.wraps(f)
    def inner(*a): return f(*a)
    return inner
@decorate
def decorated(x): return plain(x)
class C:
    def method(self): return plain(1)
    @classmethod
    def by_class(cls): return cls
    @staticmethod
    def static(a, b=2): "doc"; return a
def fails(): raise ValueError
def generator(): yield 1; yield 2
def other(): pass
"""
_USER = """
import inspect, pickle, weakref
import module
def main():
    def inner(): pass
    inner()
module.plain(1); module.decorated(1); module.C().method(); module.C.by_class(); module.C().static(1); module.other(); main()
try: module.fails()
except ValueError: pass
list(module.generator())
print(inspect.signature(module.C.static), inspect.isfunction(module.plain), module.C.static.__doc__, module.plain.__qualname__)
print(pickle.loads(pickle.dumps(module.plain)) is module.plain, weakref.ref(module.plain)() is module.plain)
"""
_WANTED = """module\tff008000\tplain
module\t\tdecorated
module\t\tC.method
module\t\tC.by_class
module\t\tC.static
module\t\tfails
module\t\tlacking
nowhere\t\tfunction
"""


def _traced(programs: PythonPrograms, python: str, wanted: str) -> PythonRun:
    (programs.folder / "module.py").write_text(_MODULE)
    (programs.folder / "user.py").write_text(_USER)
    capture = programs.capture(FUNCTIONS)
    (capture.spool / "python_functions.txt").write_text(wanted)
    return programs.run([python, "user.py"], FUNCTIONS, capture=capture)


@some_pythons
def test_named_functions(programs: PythonPrograms, python: str) -> None:
    """Functions and methods of all kinds, under their names; others not, and what is not there is told."""
    run = _traced(programs, python, _WANTED)
    bare = programs.bare([python, "user.py"])
    assert (run.status, run.stdout, run.stderr) == (0, bare.stdout, bare.stderr)
    names = run.names(FUNCTION)
    assert {name: names.count(name) for name in set(names)} == {
        "module.plain": 3,
        "module.decorated": 1,
        "module.C.method": 1,
        "module.C.by_class": 1,
        "module.C.static": 1,
        "module.fails": 1,
    }
    spans = {span.name: span for span in run.spans(FUNCTION)}
    assert (spans["module.plain"]["color"], spans["module.plain"]["flags"]) == (0xFF008000, 1)
    assert [name for name, span in spans.items() if span["value"] == 1] == ["module.fails"]
    assert set(run.notices(NOT_FOUND)) == {"module.lacking", "nowhere.function"}


@some_pythons
def test_functions_of_main_and_generators(programs: PythonPrograms, python: str) -> None:
    """From 3.12 on; before, it is said why not."""
    run = _traced(programs, python, "__main__\t\tmain\n__main__\t\tmain.inner\nmodule\t\tgenerator\n")
    if version_of(python) >= (3, 12):
        assert run.names(FUNCTION) == ["main.inner", "main", *["module.generator"] * 3]
    else:
        assert run.names(FUNCTION) == []
        told = " ".join(str(text) for text in run.notices(BOOTSTRAP))
        assert "__main__" in told
        assert "module.generator" in told


_CALLS = """
import threading
def leaf(): pass
def branch():
    for _ in range(3): leaf()
    try: raiser()
    except ValueError: pass
def raiser(): raise ValueError
def steps(): yield 1
branch(); list(steps())
def in_thread(): leaf()
thread = threading.Thread(target=in_thread); thread.start(); thread.join()
"""


@pythons
def test_every_call(programs: PythonPrograms, python: str) -> None:
    """Also in threads; with those that raise marked, and generators in pieces."""
    run = programs.run([python, "-c", _CALLS], PYTHON_CALLS)
    mine = [
        span
        for span in run.spans(FUNCTION)
        if span.name in ("leaf", "branch", "raiser", "steps", "in_thread")
    ]
    names = [str(span.name) for span in mine]
    assert {name: names.count(name) for name in set(names)} == {
        "leaf": 4,
        "branch": 1,
        "raiser": 1,
        "steps": 2,
        "in_thread": 1,
    }
    assert [span.name for span in mine if span["value"] == 1] == ["raiser"]
    branch = next(span for span in mine if span.name == "branch")
    thread = next(span for span in mine if span.name == "in_thread")
    assert branch["tid"] != thread["tid"]
    inside = [span for span in mine if branch["start"] <= span["start"] <= span["end"] <= branch["end"]]
    assert len(inside) == 5


_EVENTS = """
import warnings
from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor
import multiprocessing, multiprocessing.pool, functools
def divide(x): return 1 / x
def square(x): return x * x
def two(x, y): return x + y
if __name__ == "__main__":
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful")
    print(len(caught))
    with ThreadPoolExecutor(2) as executor:
        print(repr(executor.submit(divide, 0).exception()), list(executor.map(square, [1, 2])))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        print(repr(executor.submit(divide, 0).exception()), list(executor.map(functools.partial(two, 1), [1, 2])))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, [1, 2, 3], chunksize=1), pool.starmap(two, [(1, 2)]), pool.apply(two, (3, 4)))
    with multiprocessing.pool.ThreadPool(2) as pool:
        print(pool.map(square, [5], chunksize=1))
"""


@some_pythons
def test_exceptions_warnings_and_tasks(programs: PythonPrograms, python: str) -> None:
    """Tasks of threads, processes and pools, by the names of what was to be done."""
    (programs.folder / "events.py").write_text(_EVENTS)
    run = programs.run([python, "-W", "ignore", "events.py"], PYTHON_EVENTS)
    bare = programs.bare([python, "-W", "ignore", "events.py"])
    assert (run.status, run.stdout, run.stderr) == (0, bare.stdout, bare.stderr)
    tasks = run.names(TASK)
    assert {name: tasks.count(name) for name in set(tasks)} == {"divide": 2, "square": 6, "two": 4}
    assert sorted(str(span.name) for span in run.spans(TASK) if span["value"] == 1) == ["divide", "divide"]
    assert run.names(WARNING) == ["UserWarning: careful"]
    if version_of(python) >= (3, 12):
        raised = [span for span in run.spans(EXCEPTION) if span.name == "ZeroDivisionError"]
        assert len(raised) == 2
        assert {span["line"] for span in raised} == {5}
    else:
        assert "exceptions are recorded from Python 3.12 on" in run.notices(OLDER)
        assert run.notices(BOOTSTRAP) == []


_ENDED = """
import multiprocessing.pool, time
def forever():
    while True: time.sleep(0.001)
class Late:
    def __del__(self, sleep=time.sleep): sleep(0.3)
pool = multiprocessing.pool.ThreadPool(1)
task = pool.apply_async(forever)
while pool._inqueue.qsize(): time.sleep(0.001)
late = Late()
"""


@some_pythons
def test_threads_that_python_ends_at_exit(programs: PythonPrograms, python: str) -> None:
    """It unwinds them through frames of ours."""
    run = programs.run([python, "-W", "ignore", "-c", _ENDED], PYTHON_EVENTS | GC | GIL)
    assert (run.status, run.stdout) == (0, "")
    assert run.stderr == "" or is_free_threaded(
        python
    )  # which may complain of a broken pipe, also without us


def test_a_recording_of_chosen_functions(tmp_path: Path) -> None:
    """From the command line to the report; a file with a mistake is told before the program starts."""
    (tmp_path / "module.py").write_text(_MODULE)
    (tmp_path / "user.py").write_text(
        "import module, gc\ngc.collect()\nmodule.plain(module.C().method())\nprint('ran')\n"
    )
    (tmp_path / "good.json").write_text(
        '[{"module": "module", "color": "red", "functions": ["plain", "C.method"]}]'
    )
    (tmp_path / "bad.json").write_text('[{"module": "module", "function": ["plain"]}]')
    words = ("profile", "--light", "-t", "gc,gil,import,python-events", "-o", "x", "--python-functions-trace")
    failed = warplens(*words, "bad.json", sys.executable, "user.py", cwd=tmp_path)
    assert failed.returncode == 2
    assert 'unknown key "function"' in failed.stderr
    assert "ran" not in failed.stdout
    done = warplens(*words, "good.json", sys.executable, "user.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        calls = report.table("python_calls").to_pylist()
        assert [row["name"] for row in calls if row["kind"] == "function"] == [
            "module.C.method",
            "module.plain",
            "module.plain",
        ]
        assert 2 in [row["generation"] for row in report.table("gc").to_pylist()]
        assert "module" in [row["name"] for row in report.table("imports").to_pylist()]
        assert report.table("gil").num_rows > 0
