"""Ranges of interleaved tasks: each belongs to its task and its parent, whatever library runs them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.nvtx.conftest import Heard, Record
from tests.unit.nvtx.heard import names, ranges, tree

pytestmark = [pytest.mark.require("native"), pytest.mark.require("gcc")]

needs_311 = pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup came with 3.11")
needs_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")


@pytest.mark.parametrize("with_block", [True, False])
def test_interleaved_tasks_keep_their_durations_apart(heard: Heard, with_block: bool) -> None:
    body = "with nvtx.annotate(name): await turns(n)" if with_block else "await nvtx.annotate(name)(turns)(n)"
    found = ranges(
        heard(
            f"""
            async def turns(n):
                for _ in range(n): await asyncio.sleep(0)
            async def work(name, n):
                {body}
            async def main():
                await asyncio.gather(work("short", 1), work("long", 5))
                nvtx.mark("over")
            asyncio.run(main())
            """
        )
    )
    short, long = found
    assert (short.name, long.name) == ("short", "long")
    assert short.begin < long.begin
    assert short.end is not None
    assert long.end is not None
    assert short.end < long.end
    assert short.task != long.task
    assert short.style == long.style == "start"


@needs_311
def test_children_of_a_task_group_are_under_the_groups_range(heard: Heard) -> None:
    events = heard(
        """
        async def child(name):
            with nvtx.annotate(name):
                await asyncio.sleep(0)
                with nvtx.annotate(name + " inner"): await asyncio.sleep(0)
        async def main():
            with nvtx.annotate("main"):
                with nvtx.annotate("group"):
                    async with asyncio.TaskGroup() as group:
                        group.create_task(child("a"), name="A"); group.create_task(child("b"), name="B")
                with nvtx.annotate("after"): await asyncio.sleep(0)
        with nvtx.annotate("program"): asyncio.run(main())
        """
    )
    assert names(events) == [
        ("program", None),
        ("main", "program"),
        ("group", "main"),
        ("a", "group"),
        ("b", "group"),
        ("a inner", "a"),
        ("b inner", "b"),
        ("after", "main"),
    ]
    assert [task for _, task, _ in tree(events)][3:7] == ["asyncio:A", "asyncio:B", "asyncio:A", "asyncio:B"]
    made = {event["name"]: event for event in events if event["event"] == "task"}
    (group,) = (event["id"] for event in events if event["event"] == "start" and event["message"] == "group")
    assert made["A"]["parent"] == made["B"]["parent"] == group


@pytest.mark.slow
def test_gathered_children_and_what_they_call(heard: Heard) -> None:
    events = heard(
        """
        @nvtx.annotate()
        def plain():
            with nvtx.annotate("deeper"): pass
        @nvtx.annotate()
        async def child():
            plain(); await asyncio.sleep(0); plain()
        async def main():
            with nvtx.annotate("all"): await asyncio.gather(child(), child())
            plain()
        asyncio.run(main())
        plain()
        """
    )
    found = ranges(events)
    assert [(r.name, r.parent) for r in found if r.name == "child"] == [("child", "all")] * 2
    inside = [r for r in found if r.name == "plain"]
    assert [r.parent for r in inside] == ["child"] * 4 + [None] * 2
    assert len({r.task for r in inside[:4]}) == 2
    assert inside[5].task == ""
    assert {r.parent for r in found if r.name == "deeper"} == {"plain"}
    assert all(r.style == "push" for r in found if r.name in ("plain", "deeper"))


@pytest.mark.slow
def test_a_cancelled_task_ends_its_ranges(heard: Heard) -> None:
    found = ranges(
        heard(
            """
            @nvtx.annotate()
            async def inner():
                with nvtx.annotate("innermost"): await asyncio.sleep(100)
            async def outer():
                with nvtx.annotate("outer"): await inner()
            async def main():
                task = asyncio.create_task(outer())
                await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError): await task
                nvtx.mark("over")
                with nvtx.annotate("later"): raise KeyError
            with contextlib.suppress(KeyError): asyncio.run(main())
            """
        )
    )
    assert [(r.name, r.parent, r.end is not None) for r in found] == [
        ("outer", None, True),
        ("inner", "outer", True),
        ("innermost", "inner", True),
        ("later", None, True),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("collect", ["del task", "pass"])
def test_a_loop_closed_with_pending_tasks_ends_their_ranges(heard: Heard, collect: str) -> None:
    events = heard(
        f"""
        import logging; logging.disable()
        async def work():
            with nvtx.annotate("pending"): await asyncio.sleep(100)
        loop = asyncio.new_event_loop()
        task = loop.create_task(work())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        {collect}
        """
    )
    assert names(events) == [("pending", None)]


@pytest.mark.slow
def test_context_managers_made_of_generators_hold_the_body(heard: Heard) -> None:
    events = heard(
        """
        @contextlib.contextmanager
        def plain(name):
            with nvtx.annotate(name): yield
        @contextlib.asynccontextmanager
        async def waiting(name):
            await asyncio.sleep(0)
            with nvtx.annotate(name):
                yield
                await asyncio.sleep(0)
        def call():
            with nvtx.annotate("call"): pass
        async def work(name):
            with plain(name):
                await asyncio.sleep(0)
                async with waiting(name + " waiting"):
                    call()
                    await asyncio.sleep(0)
                    with nvtx.annotate(name + " inner"): await asyncio.sleep(0)
        with plain("sync"): call()
        async def main(): await asyncio.gather(work("a"), work("b"))
        asyncio.run(main())
        """
    )
    found = ranges(events)
    assert [(r.name, r.parent) for r in found if r.name != "call"] == [
        ("sync", None),
        ("a", None),
        ("b", None),
        ("a waiting", "a"),
        ("b waiting", "b"),
        ("a inner", "a waiting"),
        ("b inner", "b waiting"),
    ]
    assert [r.parent for r in found if r.name == "call"] == ["sync", "a waiting", "b waiting"]
    assert [r.style for r in found if r.name in ("sync", "a")] == ["push", "start"]
    assert len({r.task for r in found}) == 3
    assert all(r.end is not None for r in found)


@pytest.mark.slow
def test_exit_stacks_hold_ranges_for_their_owner(heard: Heard) -> None:
    events = heard(
        """
        async def work(name):
            async with contextlib.AsyncExitStack() as stack:
                stack.enter_context(nvtx.annotate(name + " async"))
                with contextlib.ExitStack() as plain:
                    plain.enter_context(nvtx.annotate(name + " plain"))
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
        async def main(): await asyncio.gather(work("a"), work("b"))
        asyncio.run(main())
        with contextlib.ExitStack() as stack: stack.enter_context(nvtx.annotate("sync"))
        """
    )
    assert names(events) == [
        ("a async", None),
        ("a plain", "a async"),
        ("b async", None),
        ("b plain", "b async"),
        ("sync", None),
    ]
    assert [r.style for r in ranges(events)] == ["start"] * 4 + ["push"]


def test_objects_that_enter_for_their_owner(heard: Heard) -> None:
    events = heard(
        """
        class Timer:
            def __init__(self, name): self.range = nvtx.annotate(name)
            def __enter__(self): self.range.__enter__()
            def __exit__(self, *error): self.range.__exit__(*error)
            async def __aenter__(self): self.range.__enter__()
            async def __aexit__(self, *error): self.range.__exit__(*error)
        async def work(name):
            async with Timer(name):
                with Timer(name + " inner"): await asyncio.sleep(0)
                await asyncio.sleep(0)
        async def main(): await asyncio.gather(work("a"), work("b"))
        asyncio.run(main())
        with Timer("sync"): pass
        """
    )
    assert names(events) == [("a", None), ("a inner", "a"), ("b", None), ("b inner", "b"), ("sync", None)]
    assert [r.style for r in ranges(events)] == ["start"] * 4 + ["push"]


def test_one_object_is_entered_by_many_tasks_and_by_plain_code(heard: Heard) -> None:
    found = ranges(
        heard(
            """
            shared = nvtx.annotate("shared")
            def plain():
                with shared: pass
            async def work(n):
                with shared:
                    plain()
                    for _ in range(n): await asyncio.sleep(0)
            async def main(): await asyncio.gather(work(1), work(3), work(2))
            with shared: asyncio.run(main())
            """
        )
    )
    started = [r for r in found if r.style == "start"]
    ends = [r.end for r in started]
    assert None not in ends
    assert ends == [sorted(ends)[0], sorted(ends)[2], sorted(ends)[1]]  # type: ignore[type-var]
    assert len({r.task for r in started}) == 3
    assert [r.style for r in found].count("push") == 4
    assert all(r.end is not None for r in found)


@pytest.mark.slow
def test_threads_with_loops_of_their_own(heard: Heard) -> None:
    found = ranges(
        heard(
            """
            import threading
            async def work(name):
                with nvtx.annotate(name):
                    for i in range(3):
                        await asyncio.sleep(0)
                        with nvtx.annotate(name + " step"): await asyncio.sleep(0)
            async def main(name): await asyncio.gather(work(name + "1"), work(name + "2"))
            threads = [threading.Thread(target=lambda n=n: asyncio.run(main(n))) for n in "abc"]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            """
        )
    )
    assert len(found) == 24
    assert all(r.end is not None and r.thread == r.end_thread for r in found)
    assert all(r.parent == r.name.removesuffix(" step") for r in found if r.name.endswith("step"))
    assert len({r.thread for r in found}) == 3
    assert len({(r.thread, r.task) for r in found}) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ["asyncio.to_thread(plain)", "asyncio.get_running_loop().run_in_executor(None, plain)"]
)
def test_calls_handed_to_other_threads_are_of_no_task(heard: Heard, way: str) -> None:
    found = ranges(
        heard(
            f"""
            @nvtx.annotate()
            def plain(): pass
            async def main():
                with nvtx.annotate("main"): await {way}
            asyncio.run(main())
            """
        )
    )
    main, plain = found
    assert main.task.startswith("asyncio:")
    assert (plain.name, plain.style, plain.task, plain.parent) == ("plain", "push", "", None)
    assert plain.thread != main.thread


@needs_312
def test_eager_tasks(heard: Heard) -> None:
    events = heard(
        """
        async def child(name):
            with nvtx.annotate(name):
                with nvtx.annotate(name + " first"): pass
                await asyncio.sleep(0)
        async def main():
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
            with nvtx.annotate("main"): await asyncio.gather(asyncio.create_task(child("a")), asyncio.create_task(child("b")))
        asyncio.run(main())
        """
    )
    assert names(events) == [("main", None), ("a", "main"), ("a first", "a"), ("b", "main"), ("b first", "b")]


@pytest.mark.slow
@pytest.mark.require("uvloop")
def test_uvloop(heard: Heard) -> None:
    events = heard(
        """
        import uvloop
        def plain():
            with nvtx.annotate("plain"): pass
        async def child(name):
            with nvtx.annotate(name):
                await asyncio.sleep(0.001); plain()
        async def main():
            with nvtx.annotate("main"): await asyncio.gather(child("a"), child("b"))
        loop = uvloop.new_event_loop()
        loop.run_until_complete(main())
        """
    )
    found = ranges(events)
    assert [(r.name, r.parent) for r in found] == [
        ("main", None),
        ("a", "main"),
        ("b", "main"),
        ("plain", "a"),
        ("plain", "b"),
    ]
    assert len({r.task for r in found}) == 3


@pytest.mark.slow
@pytest.mark.require("trio")
def test_trio_nurseries(heard: Heard) -> None:
    events = heard(
        """
        import trio
        def plain():
            with nvtx.annotate("plain"): pass
        @nvtx.annotate("child")
        async def child(turns):
            for _ in range(turns): await trio.lowlevel.checkpoint()
            plain()
        async def main():
            with nvtx.annotate("nursery"):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(child, 1); nursery.start_soon(child, 3)
            with trio.move_on_after(0.001):
                with nvtx.annotate("cancelled"): await trio.sleep(100)
        trio.run(main)
        plain()
        """
    )
    found = ranges(events)
    assert sorted((r.name, str(r.parent)) for r in found) == [
        ("cancelled", "None"),
        ("child", "nursery"),
        ("child", "nursery"),
        ("nursery", "None"),
        ("plain", "None"),
        ("plain", "child"),
        ("plain", "child"),
    ]
    assert all(r.end is not None for r in found)
    assert all(r.task.startswith("trio:") for r in found[:-1])
    assert found[-1].task == ""
    assert len({r.task for r in found if r.name == "child"}) == 1  # the same name, two tasks
    assert len({event["id"] for event in events if event["event"] == "task"}) == 3


@pytest.mark.slow
@pytest.mark.require("anyio", "trio")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio(heard: Heard, backend: str) -> None:
    events = heard(
        f"""
        import anyio
        async def child(name, turns):
            with nvtx.annotate(name):
                for _ in range(turns): await anyio.sleep(0)
                with nvtx.annotate(name + " inner"): await anyio.sleep(0)
        async def main():
            with nvtx.annotate("group"):
                async with anyio.create_task_group() as group:
                    group.start_soon(child, "a", 1); group.start_soon(child, "b", 3)
        anyio.run(main, backend={backend!r})
        """
    )
    assert sorted(names(events), key=lambda pair: pair[0]) == [
        ("a", "group"),
        ("a inner", "a"),
        ("b", "group"),
        ("b inner", "b"),
        ("group", None),
    ]
    assert {task.split(":")[0] for _, task, _ in tree(events)} == {backend}


def test_a_new_recording_numbers_tasks_anew(heard: Heard) -> None:
    events = heard(
        """
        import ctypes, os
        tool = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
        async def main():
            with nvtx.annotate("before"): await asyncio.sleep(0)
            tool.nvtx_tool_begin_anew()
            with nvtx.annotate("after"): await asyncio.sleep(0)
            nvtx.push_range("pushed"); nvtx.pop_range()
        asyncio.run(main())
        """
    )
    started = [event["task"] for event in events if event["event"] == "start"]
    assert started == [1, 2]
    assert [event["task"] for event in events if event["event"] == "enter"] == [2]


@pytest.mark.slow
def test_tasks_are_not_kept_alive_nor_confused(heard: Heard) -> None:
    events = heard(
        """
        import weakref
        async def child():
            with nvtx.annotate("child"): await asyncio.sleep(0)
        async def main():
            refs = []
            for _ in range(50):
                task = asyncio.create_task(child())
                await task
                refs.append(weakref.ref(task))
                del task
                await asyncio.sleep(0)
            assert [ref() for ref in refs] == [None] * 50
        asyncio.run(main())
        """
    )
    assert len({event["task"] for event in events if event["event"] == "start"}) == 50


def test_another_tool_gets_plain_start_end_ranges(record: Record) -> None:
    events = record(
        "import asyncio, warplens.nvtx as nvtx\n"
        "async def work(name, n):\n"
        "    with nvtx.annotate(name):\n"
        "        for _ in range(n): await asyncio.sleep(0)\n"
        "async def main(): await asyncio.gather(work('a', 1), work('b', 3))\n"
        "asyncio.run(main())",
        "start",
        "end",
        "push",
    )
    assert [(event["event"], event.get("message")) for event in events] == [
        ("start", "a"),
        ("start", "b"),
        ("end", None),
        ("end", None),
    ]
    assert [event["id"] for event in events[:2]] == [event["id"] for event in events[2:]]


@pytest.mark.slow
def test_a_tool_that_comes_in_the_middle_gets_no_pop_without_a_push(task_tool: Path, record: Record) -> None:
    events = record(
        f"""
        import asyncio, os, warplens.nvtx as nvtx
        async def early():
            with nvtx.annotate("early"): await asyncio.sleep(0)
        async def late():
            os.environ["NVTX_INJECTION64_PATH"] = {str(task_tool)!r}
            assert nvtx.attached()
            nvtx.push_range("pushed")
        async def main(): await asyncio.gather(early(), late())
        asyncio.run(main())
        """,
        "push",
        "pop",
        NVTX_INJECTION64_PATH="",
    )
    assert [event["event"] for event in events] == ["push"]
