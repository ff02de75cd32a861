"""Stacks of Python by the clock: what is seen of programs whose call graph is known, by every CPython of the machine."""

from __future__ import annotations

import errno
import itertools
import re
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.programs.launching import given_time
from tests.support.programs.python_running import (
    PythonPrograms,
    PythonRun,
    interpreters,
    is_free_threaded,
    representatives,
    version_of,
)
from tests.support.reports.python_stacks import CUT, EXCEPTION, PYTHON_SAMPLES, Sample, sampled, samples

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
each_python = pytest.mark.parametrize("python", interpreters())
some_pythons = pytest.mark.parametrize("python", representatives())
PYTHON_DENIED = 3


@pytest.fixture
def programs(tmp_path: Path) -> PythonPrograms:
    return PythonPrograms(tmp_path)


def write(programs: PythonPrograms, text: str) -> Path:
    """A program; its last argument says for how long it is to run."""
    path = programs.folder / "program.py"
    path.write_text(
        f"import sys, time\nEND = time.monotonic() + float(sys.argv[-1])\n{text}", encoding="utf-8"
    )
    return path


GRAPH = """
class Node:
    def __init__(self, left, right):
        self.left, self.right = left, right

def build(depth):
    return Node(build(depth - 1), build(depth - 1)) if depth else None

def walk(node):
    return 0 if node is None else 1 + walk(node.left) + walk(node.right)

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def squares(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

def step():
    return walk(build(8)) + fib(14) + squares(5000)

def graph():
    while time.monotonic() < END:
        step()

graph()
"""
CALLS = {
    "graph": {"step"},
    "step": {"walk", "build", "fib", "squares"},
    "walk": {"walk"},
    "fib": {"fib"},
    "build": {"build", "__init__"},
}


def is_possible(sample: Sample) -> bool:
    short = [name.rpartition(".")[2] for name in sample.names]
    inner = short[short.index("graph") :]
    return short[0] == "<module>" and all(
        callee in CALLS.get(caller, ()) for caller, callee in itertools.pairwise(inner)
    )


@pytest.mark.parametrize("jit", ["0", "1"])
@each_python
def test_stacks_are_those_of_the_call_graph(python: str, programs: PythonPrograms, jit: str) -> None:
    if jit == "1" and (version_of(python) < (3, 14) or is_free_threaded(python)):
        pytest.skip("this Python has no JIT")
    program = write(
        programs,
        f"{GRAPH}\nprint(getattr(sys, '_jit', None) and sys._jit.is_available() <= sys._jit.is_enabled())",
    )

    def enough(seen: list[Sample]) -> bool:
        return sum(sample.has("graph", "step") for sample in seen) >= 50

    run, seen = sampled(programs, [python, program], enough, 1.5, PYTHON_JIT=jit)
    assert jit == "0" or run.stdout.split()[-1] == "True", "the JIT is there, but not on"
    inside = [sample for sample in seen if sample.has("graph", "step")]
    impossible = [sample for sample in inside if not is_possible(sample)]
    assert len(impossible) <= len(inside) / 20, [sample.names for sample in impossible]
    assert any(sample.has("step", "squares") for sample in inside)
    lines = program.read_text(encoding="utf-8").splitlines()
    for frame in {frame for sample in inside for frame in sample.frames}:
        assert frame.file == str(program)
        assert 0 < frame.first_line <= frame.line <= len(lines), frame
    calls = {frame.line for sample in inside for frame in sample.frames if frame.name == "graph"}
    assert lines.index("        step()") + 1 in calls


@each_python
def test_a_blocked_leaf_has_the_caller_it_has_now(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
import threading
lock = threading.Lock()
lock.acquire()
def leaf():
    lock.acquire(timeout=0.2)
def caller_a():
    leaf()
def caller_b():
    leaf()
def worker():
    while time.monotonic() < END:
        caller_a()
        caller_b()
thread = threading.Thread(target=worker)
thread.start()
thread.join()
""",
    )

    def both(seen: list[Sample]) -> bool:
        return all(
            sum(sample.has("worker", caller, "leaf") for sample in seen) >= 2
            for caller in ("caller_a", "caller_b")
        )

    _, seen = sampled(programs, [python, program], both, 1.2)
    assert both(seen)


HANDLERS = """
import asyncio
def spin():
    until = time.monotonic() + 0.02
    while time.monotonic() < until: pass
def in_handler(): spin()
def after_handler(): spin()
def in_generator():
    spin()
    yield 1
def beside(): spin()
async def in_coroutine(): spin()
async def awaits():
    try:
        raise KeyError
    except KeyError:
        await in_coroutine()
def fails():
    try:
        raise ValueError
    except ValueError:
        in_handler()
    after_handler()
def fails_around():
    try:
        raise ValueError
    except ValueError:
        list(in_generator())
while time.monotonic() < END:
    fails()
    fails_around()
    asyncio.run(awaits())
    beside()
"""


@each_python
def test_samples_say_whether_an_exception_is_handled(python: str, programs: PythonPrograms) -> None:
    """In an except block and in what that calls, generators and coroutines among it; not behind it."""
    handled, others = ("in_handler", "in_generator", "in_coroutine"), ("after_handler", "beside")

    def shares(seen: list[Sample]) -> dict[str, tuple[int, int]]:
        found = {}
        for name in (*handled, *others):
            inside = [sample for sample in seen if sample.has(name, "spin")]
            found[name] = sum(s.count for s in inside if s.flags & EXCEPTION), sum(s.count for s in inside)
        return found

    program = write(programs, HANDLERS)
    _, seen = sampled(
        programs, [python, program], lambda seen: all(count >= 20 for _, count in shares(seen).values()), 1.0
    )
    found = shares(seen)
    assert all(
        with_exception >= 0.9 * count for with_exception, count in (found[name] for name in handled)
    ), found
    assert all(with_exception <= 0.1 * count for with_exception, count in (found[name] for name in others)), (
        found
    )


@some_pythons
def test_code_at_the_place_of_other_code_has_its_own_name(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
number = 0
while time.monotonic() < END:
    number += 1
    space = {}
    exec(compile("def made_%d(n):\\n    for i in range(n): i * i\\n" % number, "file_%d" % number, "exec"), space)
    space["made_%d" % number](20000)
    del space
""",
    )
    _, seen = sampled(
        programs,
        [python, program],
        lambda seen: len({name for s in seen for name in s.names if "made" in name}) >= 3,
    )
    made = {(frame.name, frame.file) for sample in seen for frame in sample.frames if "made" in frame.name}
    assert len(made) >= 3
    assert all(re.sub("^made", "file", name) == file for name, file in made)


@some_pythons
def test_deep_recursion(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
sys.setrecursionlimit(100000)
def deep(n):
    if n:
        return deep(n - 1)
    while time.monotonic() < END:
        pass
def begin():
    deep(1000)
begin()
""",
    )

    def whole(seen: list[Sample]) -> bool:
        return any(
            sample.names == ("<module>", "begin", *["deep"] * 1001) and not sample.flags & CUT
            for sample in seen
        )

    _, seen = sampled(programs, [python, program], whole)
    assert whole(seen)


@some_pythons
def test_deeper_than_what_is_read_is_said_to_be_cut(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
import threading
sys.setrecursionlimit(100000)
threading.stack_size(256 << 20)
def deep(n):
    if n:
        return deep(n - 1)
    while time.monotonic() < END:
        pass
thread = threading.Thread(target=deep, args=(3000,))
thread.start()
thread.join()
""",
    )

    def cut(seen: list[Sample]) -> bool:
        return any(sample.flags & CUT and set(sample.names) == {"deep"} for sample in seen)

    _, seen = sampled(programs, [python, program], cut)
    assert cut(seen)


NAMES = ("plain", "é", "名前", "\U00020000x")  # each is kept in memory in another way


@each_python
def test_names_of_every_kind_of_text(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        f"""
import threading
space = {{"time": time, "END": END}}
for name in {NAMES!r}:
    exec('''
class NAME:
    def NAME(self):
        while time.monotonic() < END:
            pass
'''.replace("NAME", name), space)
    threading.Thread(target=getattr(space[name](), name)).start()
""",
    )
    expected = {name if version_of(python) < (3, 11) else f"{name}.{name}" for name in NAMES}

    def found(seen: list[Sample]) -> set[str]:
        return {frame.name for sample in seen for frame in sample.frames if frame.file == "<string>"} - {
            "<module>"
        }

    _, seen = sampled(programs, [python, program], lambda seen: found(seen) >= expected)
    assert (
        expected <= found(seen) <= expected | set(NAMES)
    )  # the bodies of the classes run, too, for a moment


@some_pythons
def test_many_threads(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
import threading
event = threading.Event()
def deep(n):
    if n:
        deep(n - 1)
    else:
        event.wait()
threads = [threading.Thread(target=deep, args=(10,)) for _ in range(200)]
for thread in threads:
    thread.start()
while time.monotonic() < END:
    pass
event.set()
for thread in threads:
    thread.join()
""",
    )

    def all_of_them(seen: list[Sample]) -> bool:
        return len({sample.tid for sample in seen if sample.has(*["deep"] * 11, "wait")}) == 200

    _, seen = sampled(programs, [python, program], all_of_them, 1.5)
    assert all_of_them(seen)


@some_pythons
def test_generators_and_coroutines(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
import asyncio
def numbers():
    for i in range(3000):
        yield i * i % 7
def consume():
    total = 0
    for number in numbers():
        total += number
async def inner():
    consume()
    await asyncio.sleep(0)
async def outer():
    while time.monotonic() < END:
        await inner()
asyncio.run(outer())
""",
    )

    def chain(seen: list[Sample]) -> bool:
        return any(sample.has("outer", "inner", "consume", "numbers") for sample in seen)

    _, seen = sampled(programs, [python, program], chain)
    assert chain(seen)


@pytest.mark.parametrize("python", [one for one in representatives() if version_of(one.values[0]) >= (3, 11)])
def test_tasks_of_asyncio_have_their_names(python: str, programs: PythonPrograms) -> None:
    """Frames of 3.10 do not lead to their coroutines."""
    program = write(
        programs,
        """
import asyncio
def busy():
    until = time.monotonic() + 0.005
    while time.monotonic() < until:
        pass
async def first():
    while time.monotonic() < END:
        busy()
        await asyncio.sleep(0)
async def second():
    await first()
async def main():
    await asyncio.gather(asyncio.create_task(first(), name="one"), asyncio.create_task(second(), name="zw\u00f6lf"), first())
    busy()
asyncio.run(main())
""",
    )

    def tasks(seen: list[Sample], *names: str) -> set[str | None]:
        """Names of tasks; a look between two switches may find the frames without their task, but never with another."""
        return {sample.task for sample in seen if sample.has(*names, "first", "busy")} - {None}

    def enough(seen: list[Sample]) -> bool:
        return len(tasks(seen)) >= 3 and bool(tasks(seen, "second"))

    _, seen = sampled(programs, [python, program], enough, 1.5)
    assert tasks(seen, "second") == {"zwölf"}
    nameless = [sample.task is None for sample in seen if sample.has("first", "busy")]
    assert sum(nameless) * 4 < len(nameless)
    numbered, *named = sorted(str(name) for name in tasks(seen))
    assert named == ["one", "zwölf"]
    assert re.fullmatch(r"Task-\d+", numbered)
    assert {sample.task for sample in seen if not sample.has("_run")} == {None}


@some_pythons
def test_options_that_hide_the_environment(python: str, programs: PythonPrograms) -> None:
    program = write(programs, GRAPH)
    _, seen = sampled(
        programs,
        [python, "-I", "-S", "-E", program],
        lambda seen: any(sample.has("step", "squares") for sample in seen),
    )
    assert any(sample.has("graph", "step", "squares") for sample in seen)


@some_pythons
def test_subinterpreters(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
import time
def in_another():
    while time.monotonic() < %r:
        pass
in_another()
''' % END)
""",
    )
    _, seen = sampled(
        programs, [python, program], lambda seen: any(sample.has("<module>", "in_another") for sample in seen)
    )
    assert any(sample.has("<module>", "in_another") for sample in seen)


@each_python
def test_interpreters_that_run_at_once(python: str, programs: PythonPrograms) -> None:
    """Each has a GIL of its own, so that two threads run Python at the same time."""
    if version_of(python) < (3, 14):
        pytest.skip("InterpreterPoolExecutor came with 3.14")
    code = "import time\\ndef {name}():\\n    while time.monotonic() < {end}: pass\\n{name}()"
    program = write(
        programs,
        f"""
from concurrent.futures import InterpreterPoolExecutor
if __name__ == "__main__":
    with InterpreterPoolExecutor(2) as pool:
        for done in [pool.submit(exec, "{code}".format(name=name, end=END), {{}}) for name in ("first", "second")]:
            done.result()
""",
    )

    def both(seen: list[Sample]) -> bool:
        return all(any(sample.has("<module>", name) for sample in seen) for name in ("first", "second"))

    _, seen = sampled(programs, [python, program], both)
    assert both(seen)


@some_pythons
def test_children_of_a_fork_are_sampled_too(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
import os
def busy(until):
    while time.monotonic() < until:
        pass
children = 0
busy(time.monotonic() + 0.1)
while time.monotonic() < END:
    child = os.fork()
    if child == 0:
        busy(time.monotonic() + 0.05)
        os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8
    children += 1
print(children)
""",
    )

    def several(seen: list[Sample]) -> bool:
        return len({sample.pid for sample in seen if sample.has("busy")}) >= 3

    run, seen = sampled(programs, [python, program], several, 1.5)
    assert several(seen)
    assert int(run.stdout) >= 1
    assert all(sample.pid == sample.tid for sample in seen if sample.has("busy"))


@some_pythons
def test_a_closed_window_records_no_sample(python: str, programs: PythonPrograms) -> None:
    run = programs.run(
        [python, write(programs, GRAPH), "0.2"],
        PYTHON_SAMPLES,
        capture=programs.capture(PYTHON_SAMPLES, python_hz=1000, open=False),
    )
    assert (run.status, samples(run)) == (0, [])


@some_pythons
@pytest.mark.require("gcc")
def test_a_sandbox_without_process_vm_readv(python: str, programs: PythonPrograms, target: Target) -> None:
    program = write(programs, GRAPH)
    run, seen = sampled(
        programs,
        [target("without_readv"), python, program],
        lambda seen: any(sample.has("step", "squares") for sample in seen),
    )
    assert any(sample.has("graph", "step", "squares") for sample in seen)
    assert PYTHON_DENIED not in [record["notice"] for record in run.of("cpu_notice")]


@some_pythons
@pytest.mark.require("gcc")
def test_a_sandbox_in_which_no_memory_can_be_read(
    python: str, programs: PythonPrograms, target: Target
) -> None:
    """The sampler says why it is off; the program notices nothing."""
    program = write(programs, "while time.monotonic() < END: pass\nprint('done')\nsys.exit(3)\n")

    def once(seconds: float) -> PythonRun:
        capture = programs.capture(PYTHON_SAMPLES, python_hz=1000)
        run = programs.run(
            [target("without_readv"), "-m", python, program, str(seconds)], PYTHON_SAMPLES, capture=capture
        )
        assert (run.status, run.stdout, run.stderr) == (3, "done\n", "")
        assert samples(run) == []
        return run

    def denied(run: PythonRun) -> set[int]:
        return {record["value"] for record in run.of("cpu_notice") if record["notice"] == PYTHON_DENIED}

    assert denied(given_time(once, lambda run: bool(denied(run)), 0.2)) == {errno.EPERM}


def test_programs_without_python_have_no_thread_of_ours(programs: PythonPrograms) -> None:
    run = programs.run(["sh", "-c", "ls /proc/self/task | wc -l"], PYTHON_SAMPLES)
    assert run.stdout.strip() == "1"
    assert run.spools == []


ENDS = {
    "at once": ("pass", 0),
    "status": ("raise SystemExit(3)", 3),
    "_exit": ("import os; os._exit(4)", 4),
    "daemon thread": (
        "import threading, itertools\nthreading.Thread(target=lambda: [0 for _ in itertools.count()], daemon=True).start()",
        0,
    ),
    "killed": ("import os; os.kill(os.getpid(), 9)", -9),
    "exec": ("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'raise SystemExit(5)'])", 5),
    "at exit": ("import atexit, time; atexit.register(time.sleep, 0.05)", 0),
}


@some_pythons
@pytest.mark.parametrize("end", ENDS)
def test_programs_end_as_without_us(python: str, end: str, programs: PythonPrograms) -> None:
    text, status = ENDS[end]
    for _ in range(3):
        run = programs.run(
            [python, "-c", text], PYTHON_SAMPLES, capture=programs.capture(PYTHON_SAMPLES, python_hz=2000)
        )
        assert (run.status, run.stderr) == (status, "")
