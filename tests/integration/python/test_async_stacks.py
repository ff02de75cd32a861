"""Stacks of asyncio tasks: what each one awaits, and which task awaits which, of programs that know it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.programs.launching import warplens
from tests.support.programs.python_running import (
    PythonPrograms,
    PythonRun,
    interpreters,
    representatives,
    version_of,
)
from tests.support.reports.python_stacks import OF_TASKS, ON_CPU, OUTER, READY, Sample, sampled, samples
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
some_pythons = pytest.mark.parametrize(
    "python", [one for one in representatives() if version_of(one.values[0]) >= (3, 11)]
)
each_python = pytest.mark.parametrize("python", [one for one in interpreters() if version_of(one) >= (3, 11)])


@pytest.fixture
def programs(tmp_path: Path) -> PythonPrograms:
    return PythonPrograms(tmp_path)


def write(programs: PythonPrograms, text: str) -> Path:
    """A program; its last argument says for how long it is to run."""
    path = programs.folder / "program.py"
    path.write_text(f"import asyncio, sys, time\nSECONDS = float(sys.argv[-1])\n{text}", encoding="utf-8")
    return path


def short(sample: Sample) -> tuple[str, ...]:
    """The names of a stack, without the classes and functions that they are in; those of tasks are whole."""
    return tuple(name if name.startswith("task ") else name.rpartition(".")[2] for name in sample.names)


def awaited(seen: list[Sample], task: str) -> set[tuple[str, ...]]:
    """The stacks of a task while it awaited something."""
    return {short(sample) for sample in seen if sample.task == task and not sample.flags & (ON_CPU | READY)}


# One task for each way to await, all below `main`.
WAYS = """
async def leaf():
    await asyncio.sleep(SECONDS)
def named(coroutine, name):
    return asyncio.create_task(coroutine, name=name)
async def nested():
    await leaf()
async def direct():
    await named(nested(), "child of direct")
async def gathering():
    await asyncio.gather(named(leaf(), "first of gather"), asyncio.gather(named(nested(), "second of gather")))
async def grouping():
    async with asyncio.TaskGroup() as group:
        group.create_task(leaf(), name="child of group")
async def limiting():
    await asyncio.wait_for(named(leaf(), "child of wait_for"), 100)
async def waiting(name="child of wait"):
    await asyncio.wait([named(leaf(), name)])
async def shielding():
    await asyncio.shield(named(leaf(), "shielded"))
async def around():
    await named(waiting("inner wait"), "direct of around")
async def values():
    await leaf()
    yield 1
async def streaming():
    async for _ in values():
        pass
class Awaitable:
    def __await__(self):
        return (yield from leaf().__await__())
async def own():
    await Awaitable()
async def taking(queue):
    await queue.get()
async def locking(lock):
    async with lock:
        pass
async def main():
    queue, lock = asyncio.Queue(), asyncio.Lock()
    await lock.acquire()
    apart = [named(taking(queue), "taking"), named(locking(lock), "locking")]
    ways = direct, gathering, grouping, limiting, waiting, shielding, around, streaming, own
    await asyncio.gather(*(named(way(), way.__name__) for way in ways))
    queue.put_nowait(None)
    lock.release()
    await asyncio.gather(*apart)
asyncio.run(main())
"""
MAIN = ("task main", "main")
LEAF = ("leaf", "sleep")
# Of each task its own part, and the task that it stands on.
EXPECTED = {
    "direct": (MAIN, ("direct",)),
    "child of direct": ((*MAIN, "task direct", "direct"), ("nested", *LEAF)),
    "first of gather": ((*MAIN, "task gathering", "gathering"), LEAF),
    "second of gather": ((*MAIN, "task gathering", "gathering"), ("nested", *LEAF)),
    "child of group": ((*MAIN, "task grouping", "grouping", "__aexit__"), LEAF),
    "child of wait_for": ((*MAIN, "task limiting", "limiting", "wait_for"), LEAF),
    "child of wait": ((*MAIN, "task waiting", "waiting", "wait", "_wait"), LEAF),
    "inner wait": (
        (*MAIN, "task around", "around", "task direct of around", "waiting", "wait", "_wait"),
        LEAF,
    ),
    "shielded": ((*MAIN, "task shielding", "shielding"), LEAF),
    "streaming": (MAIN, ("streaming", "values", *LEAF)),
    "own": (MAIN, ("own", "__await__", *LEAF)),
    "taking": ((), ("taking", "get")),
    "locking": ((), ("locking", "__aenter__", "acquire")),
}


@each_python
def test_task_stacks_contain_what_each_task_awaits(python: str, programs: PythonPrograms) -> None:
    expected = {name: (*below, f"task {name}", *own) for name, (below, own) in EXPECTED.items()}

    def all_there(seen: list[Sample]) -> bool:
        return all(way in awaited(seen, name) or name == "child of group" for name, way in expected.items())

    _, seen = sampled(programs, [python, write(programs, WAYS)], all_there, kinds=OF_TASKS)
    for name, way in expected.items():
        if name == "child of group":  # 3.14 has a function more there
            assert any(path[:5] == way[:5] and path[-3:] == way[-3:] for path in awaited(seen, name)), (
                awaited(seen, name)
            )
        else:
            assert way in awaited(seen, name), (name, awaited(seen, name))
    outer = {sample.task for sample in seen if sample.flags & OUTER}
    assert {"direct", "gathering", "grouping", "limiting", "waiting", "shielding"} <= outer
    assert not outer & {"child of direct", "taking", "locking", "own", "streaming"}
    assert all(str(sample.task).startswith("Task-") for sample in seen if short(sample) == MAIN)


@some_pythons
def test_times_are_those_that_the_program_measures(python: str, programs: PythonPrograms) -> None:
    """A awaits B for one part of its life, sleeps for another, and computes for the rest."""
    program = write(
        programs,
        """
async def b():
    await asyncio.sleep(SECONDS * 0.5)
def compute(until):
    while time.monotonic() < until:
        pass
async def a():
    times = [time.monotonic()]
    await asyncio.create_task(b(), name="B")
    times.append(time.monotonic())
    await asyncio.sleep(SECONDS * 0.2)
    times.append(time.monotonic())
    compute(time.monotonic() + SECONDS * 0.3)
    times.append(time.monotonic())
    print(*(end - begin for begin, end in zip(times, times[1:])))
async def main():
    await asyncio.create_task(a(), name="A")
asyncio.run(main())
""",
    )

    def parts(seen: list[Sample]) -> list[float]:
        found = [
            sum(sample.count for sample in seen if sample.task == "B"),
            sum(sample.count for sample in seen if sample.task == "A" and short(sample)[-1] == "sleep"),
            sum(sample.count for sample in seen if sample.task == "A" and sample.flags & ON_CPU),
        ]
        return [part / max(sum(found), 1) for part in found]

    def near(run: PythonRun, seen: list[Sample]) -> bool:
        measured = [float(word) for word in run.stdout.split()]
        return all(
            abs(part - own / sum(measured)) < 0.1 for part, own in zip(parts(seen), measured, strict=True)
        )

    tries = [sampled(programs, [python, program], lambda seen: min(parts(seen)) > 0.05, 1.0, OF_TASKS)]
    while not near(*tries[-1]) and len(tries) < 4:
        tries.append(
            sampled(
                programs,
                [python, program],
                lambda seen: min(parts(seen)) > 0.05,
                1.0 * 2 ** len(tries),
                OF_TASKS,
            )
        )
    run, seen = tries[-1]
    assert near(run, seen), (run.stdout, parts(seen))
    waits = [sample for sample in seen if sample.task == "A" and sample.flags & OUTER]
    assert {short(sample) for sample in waits} == {("task main", "main", "task A", "a")}


# Tasks come and go, are cancelled and fail, as fast as they can.
CHURN = """
async def one(depth):
    if depth:
        await one(depth - 1)
    else:
        await asyncio.sleep(0)
async def two():
    await asyncio.gather(one(2), one(3))
async def three():
    try:
        await asyncio.sleep(10)
    finally:
        await asyncio.sleep(0)
async def failing():
    await one(1)
    raise ValueError
async def round(number):
    cancelled = asyncio.create_task(three(), name=f"cancelled {number}")
    await two()
    cancelled.cancel()
    await asyncio.gather(cancelled, failing(), return_exceptions=True)
async def main():
    until, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        await asyncio.gather(*(round(number + i) for i in range(10)))
        number += 10
    print(number)
asyncio.run(main())
"""
CALLS = {
    "main": {"task round", "gather"},
    "task round": {"round"},
    "round": {"two", "task three", "task failing", "task one", "create_task", "gather", "cancel"},
    "two": {"task one", "gather"},
    "task one": {"one"},
    "one": {"one", "sleep"},
    "task failing": {"failing"},
    "failing": {"one"},
    "task three": {"three"},
    "three": {"sleep"},
    "task main": {"main"},
}


@some_pythons
def test_no_stack_is_impossible_while_tasks_come_and_go(python: str, programs: PythonPrograms) -> None:
    run, seen = sampled(
        programs, [python, write(programs, CHURN)], lambda seen: len(seen) > 100, 1.5, OF_TASKS
    )
    assert int(run.stdout) > 10
    impossible = []
    for sample in seen:
        names = ["task three" if name.startswith("task cancelled") else name for name in short(sample)]
        steps = list(itertools.pairwise(names))
        known = [step for step in steps if step[0] in CALLS]
        odd = [(a, b) for a, b in known if b not in CALLS[a] and (b.startswith("task ") or b in CALLS)]
        if odd or names[0] not in ("task main", "task round", "task one", "task failing", "task three"):
            impossible.append((names, odd))
    assert len(impossible) <= len(seen) // 200, impossible[:5]


@some_pythons
def test_a_task_that_is_cancelled_ends(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
async def forever():
    await asyncio.Event().wait()
async def main():
    task = asyncio.create_task(forever(), name="cancelled")
    await asyncio.sleep(SECONDS * 0.3)
    task.cancel()
    await asyncio.wait([task])
    await asyncio.create_task(asyncio.sleep(SECONDS * 0.7), name="later")
asyncio.run(main())
""",
    )
    _, seen = sampled(
        programs,
        [python, program],
        lambda seen: {"cancelled", "later"} <= {sample.task for sample in seen},
        1.0,
        OF_TASKS,
    )
    ends = {
        name: max(sample.end for sample in seen if sample.task == name) for name in ("cancelled", "later")
    }
    later = min(
        sample.start for sample in seen if sample.task == "later" and not sample.flags & (ON_CPU | READY)
    )
    assert ends["cancelled"] <= later
    waiting = [
        sample for sample in seen if sample.task == "cancelled" and not sample.flags & (ON_CPU | READY)
    ]
    assert {short(sample)[-2:] for sample in waiting} == {("forever", "wait")}


@some_pythons
def test_ten_thousand_tasks_are_bounded(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
async def inner(event):
    await event.wait()
async def worker(event):
    await inner(event)
async def main():
    event = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(10_000):
            group.create_task(worker(event))
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(0.001)
        event.set()
asyncio.run(main())
""",
    )

    def waiting(seen: list[Sample]) -> set[int]:
        return {sample.number for sample in seen if short(sample)[-3:] == ("worker", "inner", "wait")}

    run, seen = sampled(programs, [python, program], lambda seen: len(waiting(seen)) == 10_000, 2.0, OF_TASKS)
    assert len(waiting(seen)) == 10_000
    assert len(run.of("cpu_frame")) < 3_000  # equal tasks share their stacks
    by_task = defaultdict(list)
    for sample in seen:
        by_task[sample.number].append((sample.start, sample.end))
    for times in by_task.values():
        times.sort()
        assert all(end <= start + 1_000_000 for (_, end), (start, _) in itertools.pairwise(times))


@some_pythons
def test_each_loop_has_its_own_tasks(python: str, programs: PythonPrograms) -> None:
    program = write(
        programs,
        """
import threading
async def wait():
    await asyncio.sleep(SECONDS)
async def main(name):
    print(name, threading.get_native_id())
    await asyncio.create_task(wait(), name=name)
threads = [threading.Thread(target=lambda name=name: asyncio.run(main(name))) for name in ("left", "right")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(SECONDS / 4)
""",
    )
    run, seen = sampled(
        programs,
        [python, program],
        lambda seen: {"left", "right"} <= {sample.task for sample in seen},
        1.0,
        OF_TASKS,
    )
    told = dict(line.split() for line in run.stdout.splitlines())
    for name, tid in told.items():
        assert {sample.tid for sample in seen if sample.task == name} == {int(tid)}
        assert {
            short(sample) for sample in seen if sample.task == name and not sample.flags & (ON_CPU | READY)
        } == {("task main", "main", f"task {name}", "wait", "sleep")}


# The functions that keep account of tasks go with the class: from 3.14 on those in C want tasks in C.
IN_PYTHON = """
for name in ("Task", "current_task", "_register_task", "_unregister_task", "_enter_task", "_leave_task", "_swap_current_task"):
    written = getattr(asyncio.tasks, "_Py" + name if name == "Task" else "_py_" + name.lstrip("_"), None)
    if written is not None:
        setattr(asyncio.tasks, name, written)
asyncio.Task, asyncio.current_task = asyncio.tasks.Task, asyncio.tasks.current_task
"""


def test_tasks_written_in_python_are_left_out(programs: PythonPrograms) -> None:
    """They are other objects; the program must run as before."""
    text = WAYS.replace("async def leaf", f"{IN_PYTHON}\nasync def leaf", 1)
    (python, *_) = (one for one in interpreters() if version_of(one) >= (3, 11))
    run = programs.run([python, write(programs, text), "0.3"], 1)
    assert (run.status, run.stderr) == (0, "")
    assert samples(run, OF_TASKS) == []


def test_a_report_shows_them(tmp_path: Path) -> None:
    programs = PythonPrograms(tmp_path)
    (python, *_) = (one for one in interpreters() if version_of(one) >= (3, 11))
    done = warplens(
        "profile",
        "-q",
        "-o",
        "x",
        "-t",
        "none",
        "--python-sampling=true",
        python,
        write(programs, WAYS),
        "0.5",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        rows = report.table("task_samples").to_pylist()
        assert {row["state"] for row in rows} >= {"awaiting"}
        assert {"direct", "child of direct", "taking"} <= {row["task"] for row in rows}
        lanes = defaultdict(set)
        for row in rows:
            lanes[row["number"]].add(row["depth"])
        assert all(len(own) == 1 for own in lanes.values())
    flame = warplens("flame", "--kind=tasks", "--wall", "--tree", "x.warplens", cwd=tmp_path).stdout
    lines = [line[16:].rstrip() for line in flame.splitlines()]
    at = next(number for number, line in enumerate(lines) if line.strip() == "task direct")
    assert any(line.strip() == "task child of direct" for line in lines[at:])
    drawn = warplens(
        "timeline", "--rows=tasks", "--width=200", "--depth=40", "x.warplens", cwd=tmp_path
    ).stdout
    assert "taking: (Queue.get)" in drawn
