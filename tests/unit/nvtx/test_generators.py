"""Ranges of generators: what a generator calls is inside its range, what its consumer does is not, and all ranges end."""

from __future__ import annotations

import pytest

from tests.unit.nvtx.conftest import Heard
from tests.unit.nvtx.heard import names, ranges, tree

pytestmark = [pytest.mark.require("native"), pytest.mark.require("gcc"), pytest.mark.slow]


def test_a_suspended_generator_is_no_parent_of_its_consumers_ranges(heard: Heard) -> None:
    events = heard(
        """
        def call(name):
            with nvtx.annotate(name): pass
        def numbers():
            with nvtx.annotate("generator"):
                for i in range(2):
                    call("inside")
                    yield i
        with nvtx.annotate("consumer"):
            for i in numbers(): call("outside")
        """
    )
    assert names(events) == [
        ("consumer", None),
        ("generator", "consumer"),
        ("inside", "generator"),
        ("outside", "consumer"),
        ("inside", "generator"),
        ("outside", "consumer"),
    ]
    assert {r.name: r.task for r in ranges(events)} == {
        "consumer": "",
        "generator": "generator:numbers",
        "inside": "generator:numbers",
        "outside": "",
    }


def test_interleaved_generators_keep_their_durations_apart(heard: Heard) -> None:
    found = ranges(
        heard(
            """
            @nvtx.annotate()
            def first():
                for i in range(2): yield i
            @nvtx.annotate("second")
            def other():
                for i in range(4): yield i
            for pair in __import__("itertools").zip_longest(first(), other()): pass
            """
        )
    )
    first, second = found
    assert first.begin < second.begin
    assert first.end is not None
    assert second.end is not None
    assert first.end < second.end
    assert (first.task, second.task) == ("generator:first", "generator:other")


@pytest.mark.parametrize(
    "end", ["g.close()", "del g", "g.throw(KeyError)", "pass", "globals().update(kept=g)"]
)
def test_generators_that_end_early_end_their_ranges(heard: Heard, end: str) -> None:
    events = heard(
        f"""
        @nvtx.annotate("decorated")
        def numbers():
            with nvtx.annotate("block"):
                yield 1
                yield 2
        g = numbers()
        next(g)
        nvtx.mark("between")
        with contextlib.suppress(KeyError):
            {end}
        """
    )
    assert names(events) == [("decorated", None), ("block", "decorated")]


def test_a_generator_in_a_cycle_ends_its_ranges_when_it_is_collected(heard: Heard) -> None:
    events = heard(
        """
        import gc
        def numbers(box):
            with nvtx.annotate("cyclic"): yield 1
        box = []
        box.append(numbers(box))
        next(box[0])
        del box
        gc.collect()
        nvtx.mark("collected")
        """
    )
    assert names(events) == [("cyclic", None)]
    kinds = [event["event"] for event in events if event["event"] in ("start", "end", "mark")]
    assert kinds == ["start", "end", "mark"]


def test_recursion_of_generators(heard: Heard) -> None:
    events = heard(
        """
        def walk(depth):
            with nvtx.annotate(f"level {depth}"):
                yield depth
                if depth < 3: yield from walk(depth + 1)
                with nvtx.annotate(f"back {depth}"): pass
        assert list(walk(1)) == [1, 2, 3]
        """
    )
    assert names(events) == [
        ("level 1", None),
        ("level 2", "level 1"),
        ("level 3", "level 2"),
        ("back 3", "level 3"),
        ("back 2", "level 2"),
        ("back 1", "level 1"),
    ]


def test_a_decorated_generator_holds_what_it_calls(heard: Heard) -> None:
    events = heard(
        """
        @nvtx.annotate()
        def call(): pass
        @nvtx.annotate()
        def numbers():
            call()
            with nvtx.annotate("inner"): yield 1
        for _ in numbers(): call()
        """
    )
    assert names(events) == [("numbers", None), ("call", "numbers"), ("inner", "numbers"), ("call", None)]
    assert [event["name"] for event in events if event["event"] == "task"] == ["numbers"], (
        "one task for both frames"
    )


def test_calls_of_a_generator_one_after_the_other_are_one_task(heard: Heard) -> None:
    events = heard(
        """
        def numbers():
            with nvtx.annotate("plain"): yield 1
        @nvtx.annotate()
        async def many():
            with nvtx.annotate("inner"): yield 1
        async def consume():
            async for _ in many(): pass
            async for _ in many(): pass
        kept = []
        for i in range(3):
            kept.append(bytearray(100 * i))
            for _ in numbers(): pass
        one, two = numbers(), numbers()
        next(one), next(two)
        asyncio.run(consume())
        """
    )
    made = [event["name"] for event in events if event["event"] == "task" and event["library"] == "generator"]
    assert [name.split(".")[-1] for name in made] == ["numbers", "numbers", "many"]  # two at a time are two


def test_async_generators_belong_to_neither_their_consumer_nor_its_task(heard: Heard) -> None:
    events = heard(
        """
        def call(name):
            with nvtx.annotate(name): pass
        async def numbers(name):
            with nvtx.annotate(name):
                for i in range(2):
                    await asyncio.sleep(0)
                    call(name + " inside")
                    yield i
        async def consume(name):
            with nvtx.annotate(name):
                async for i in numbers(name + " numbers"):
                    call(name + " outside")
                    with nvtx.annotate(name + " body"): await asyncio.sleep(0)
        async def main(): await asyncio.gather(consume("a"), consume("b"))
        asyncio.run(main())
        """
    )
    found = set(names(events))
    assert found == {
        pair
        for name in ("a", "b")
        for pair in (
            (name, None),
            (f"{name} numbers", name),
            (f"{name} numbers inside", f"{name} numbers"),
            (f"{name} outside", name),
            (f"{name} body", name),
        )
    }
    assert len(ranges(events)) == 2 * 8
    assert {task for name, task, _ in tree(events) if "numbers" in name} == {"generator:numbers"}


@pytest.mark.parametrize("decorated", [False, True])
def test_async_generators_with_asend_athrow_and_aclose(heard: Heard, decorated: bool) -> None:
    head = "@nvtx.annotate('range')\n        async def numbers():" if decorated else "async def numbers():"
    block = "if True:" if decorated else "with nvtx.annotate('range'):"
    events = heard(
        f"""
        {head}
            {block}
                got = yield 1
                assert got == "sent"
                try: yield 2
                except KeyError: pass
                yield 3
        async def main():
            sent = numbers()
            assert [await sent.__anext__(), await sent.asend("sent"), await sent.athrow(KeyError())] == [1, 2, 3]
            await sent.aclose()
            thrown = numbers()
            await thrown.__anext__()
            with contextlib.suppress(ValueError): await thrown.athrow(ValueError())
            left = numbers()
            await left.__anext__()
            del left
            await asyncio.sleep(0.01)
            global kept
            kept = numbers()
            await kept.__anext__()
        asyncio.run(main())
        """
    )
    assert names(events) == [("range", None)] * 4


def test_a_generator_may_go_on_in_another_thread(heard: Heard) -> None:
    found = ranges(
        heard(
            """
            import threading
            def call():
                with nvtx.annotate("call"): pass
            def numbers():
                with nvtx.annotate("moved"):
                    yield 1
                    call()
                    yield 2
            g = numbers()
            next(g)
            thread = threading.Thread(target=list, args=(g,))
            thread.start()
            thread.join()
            """
        )
    )
    moved, call = found
    assert moved.end is not None
    assert moved.end_thread == call.thread != moved.thread
    assert (call.task, call.parent) == ("generator:numbers", "moved")


def test_coroutines_that_no_library_runs(heard: Heard) -> None:
    found = ranges(
        heard(
            """
            import types
            @types.coroutine
            def turn(): yield
            async def inner():
                with nvtx.annotate("inner"): await turn()
            async def work(name, n):
                with nvtx.annotate(name):
                    for _ in range(n): await turn()
                    await inner()
            ready = [work("a", 1), work("b", 3)]
            while ready:
                for c in list(ready):
                    try: c.send(None)
                    except StopIteration: ready.remove(c)
            """
        )
    )
    assert [(r.name, r.parent, r.task) for r in found] == [
        ("a", None, "coroutine:work"),
        ("b", None, "coroutine:work"),
        ("inner", "a", "coroutine:work"),
        ("inner", "b", "coroutine:work"),
    ]
    assert all(r.end is not None for r in found)


def test_a_loop_that_runs_inside_a_generator(heard: Heard) -> None:
    events = heard(
        """
        async def main():
            with nvtx.annotate("in loop"): await asyncio.sleep(0)
        def numbers():
            with nvtx.annotate("generator"):
                asyncio.run(main())
                yield 1
        list(numbers())
        """
    )
    assert [(name, task.split(":")[0]) for name, task, _ in tree(events)] == [
        ("generator", "generator"),
        ("in loop", "asyncio"),
    ]


def test_one_range_after_the_other_is_one_task(heard: Heard) -> None:
    events = heard(
        """
        def numbers():
            for i in range(100):
                with nvtx.annotate("piece"): pass
                yield i
        list(numbers())
        """
    )
    assert len({event["task"] for event in events if event["event"] == "start"}) == 1
    assert len(ranges(events)) == 100
