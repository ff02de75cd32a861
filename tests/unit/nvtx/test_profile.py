"""Profile: every call a range that its own return closes, whatever happens in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.nvtx.conftest import Event, Heard, Record, run_python
from tests.unit.nvtx.heard import ranges

pytestmark = [pytest.mark.require("native"), pytest.mark.require("gcc")]


def calls(events: list[Event]) -> list[tuple[str, str | None]]:
    """(name, parent) of every range of Profile; all have ended."""
    found = ranges(
        [event for event in events if event["event"] not in ("push", "pop") or event["domain"] == "nvtx.py"]
    )
    assert [r.name for r in found if r.end is None] == []
    return [(r.name, r.parent) for r in found]


def test_names_are_those_of_pypi_nvtx(heard: Heard) -> None:
    code = """
        def leaf(): return len([])
        def work(): leaf()
        profile = nvtx.Profile()
        profile.enable()
        work()
        profile.disable()
        work()
        with nvtx.Profile(linenos=False, annotate_cfuncs=False) as profile: work()
        assert (profile.linenos, profile.annotate_cfuncs) == (False, False)
    """
    assert calls(heard(code)) == [
        ("<string>:4(work)", None),
        ("<string>:3(leaf)", "<string>:4(work)"),
        ("len", "<string>:3(leaf)"),
        ("work", None),
        ("leaf", "work"),
    ]


@pytest.mark.slow
@pytest.mark.require("nvtx")
def test_the_same_program_says_the_same_with_pypi_nvtx(record: Record, tmp_path: Path) -> None:
    program = """
        class Thing:
            def __init__(self): self.value = max(1, 2)
            @property
            def double(self): return sorted([self.value])
        def work(n):
            if n: work(n - 1)
            try: [].index(n)
            except ValueError: Thing().double
            try: raises()
            except KeyError: pass
        def raises(): raise KeyError
        profile = nvtx.Profile()
        profile.enable()
        work(3)
        profile.disable()
    """

    def heard(library: str) -> list[tuple[str, str | None]]:
        script = tmp_path / "script.py"
        script.write_text(
            f"import {library} as nvtx\n" + "\n".join(line[8:] for line in program.splitlines())
        )
        events = record(f"import runpy; runpy.run_path({str(script)!r})", "push", "pop")
        return [(event["event"], event.get("message")) for event in events]

    ours, theirs = heard("warplens.nvtx"), heard("nvtx")
    assert ours == theirs
    assert ours[0] == ("push", "script.py:7(work)")


@pytest.mark.slow
def test_a_name_is_registered_once(heard: Heard) -> None:
    events = heard(
        """
        def leaf(): pass
        for _ in range(3):
            with nvtx.Profile(annotate_cfuncs=False):
                for _ in range(1000): leaf()
        """
    )
    strings = [event for event in events if event["event"] == "string"]
    assert len(strings) <= 3
    assert len(calls(events)) == 3000


def test_exceptions_close_what_they_leave(heard: Heard) -> None:
    events = heard(
        """
        def fails(n):
            if n == 0: raise KeyError
            try: fails(n - 1)
            finally: pass
        profile = nvtx.Profile()
        profile.enable()
        with contextlib.suppress(KeyError): fails(3)
        try: [].index(5)
        except ValueError: pass
        try: {}["x"]
        except KeyError: pass
        profile.disable()
        """
    )
    found = calls(events)
    assert [name for name, _ in found if "fails" in name] == ["<string>:3(fails)"] * 4
    assert ("index", None) in found


@pytest.mark.parametrize("depth", [0, 5])
def test_disabling_deep_in_the_stack_leaves_nothing_open(heard: Heard, depth: int) -> None:
    events = heard(
        f"""
        import sys
        def deep(n):
            if n: deep(n - 1)
            else: profile.disable()
        profile = nvtx.Profile()
        profile.enable()
        deep({depth})
        assert sys.getprofile() is None
        profile.disable()
        """
    )
    assert len(calls(events)) == depth + 1
    ends = [at for at, event in enumerate(events) if event["event"] == "pop"]
    assert len(ends) == depth + 1


def test_enabling_deep_in_the_stack_closes_nothing_of_others(heard: Heard) -> None:
    events = heard(
        """
        def leaf(): pass
        def deep(n):
            if n: deep(n - 1)
            else: profile.enable()
            leaf()
        profile = nvtx.Profile(annotate_cfuncs=False)
        deep(3)
        leaf()
        profile.disable()
        """
    )
    assert calls(events) == [("<string>:3(leaf)", None)] * 5


def test_threads_are_annotated_too(heard: Heard) -> None:
    events = heard(
        """
        import threading
        def leaf(): pass
        def work():
            leaf()
        def early():
            started.set()
            go.wait()
            leaf()
        started, go = threading.Event(), threading.Event()
        thread = threading.Thread(target=early); thread.start(); started.wait()
        profile = nvtx.Profile(annotate_cfuncs=False)
        profile.enable()
        go.set(); thread.join()
        late = threading.Thread(target=work); late.start(); late.join()
        profile.disable()
        assert threading._profile_hook is None
        after = threading.Thread(target=work); after.start(); after.join()
        """
    )
    found = ranges([event for event in events if event["event"] in ("push", "pop", "string")])
    leaves = [r for r in found if r.name == "<string>:4(leaf)"]
    assert len(leaves) == 2
    assert {r.parent for r in leaves} == {None, "<string>:5(work)"}
    assert all(r.end_thread == r.thread for r in leaves)


def test_other_threads_close_their_ranges_after_disable(heard: Heard) -> None:
    events = heard(
        """
        import sys, threading
        def work():
            inside.set()
            go.wait()
            assert sys.getprofile() is None
        inside, go = threading.Event(), threading.Event()
        profile = nvtx.Profile()
        profile.enable()
        thread = threading.Thread(target=work); thread.start(); inside.wait()
        profile.disable()
        go.set(); thread.join()
        """
    )
    assert ("<string>:4(work)" in [name for name, _ in calls(events)]) is True


def test_generators_and_coroutines_are_called_once_and_resumed(heard: Heard) -> None:
    events = heard(
        """
        def leaf(): pass
        def numbers():
            leaf(); yield 1
            leaf(); yield 2
        def delegates(): yield from numbers()
        async def wait():
            await asyncio.sleep(0)
        async def both(): await asyncio.gather(wait(), wait())
        with nvtx.Profile(linenos=False, annotate_cfuncs=False):
            for _ in delegates(): pass
            early = numbers(); next(early); early.close()
        with nvtx.Profile(linenos=False, annotate_cfuncs=False): asyncio.run(both())
        """
    )
    found = calls(events)
    names = [name for name, _ in found]
    assert names.count("delegates") == 1
    assert names.count("delegates (resumed)") == 2
    assert names.count("numbers") == 2
    assert names.count("wait") == 2
    assert names.count("wait (resumed)") == 2
    assert {parent for name, parent in found if name == "leaf"} == {"numbers", "numbers (resumed)"}


def test_another_profiler_is_back_afterwards(heard: Heard) -> None:
    events = heard(
        """
        import sys
        seen = []
        def other(frame, event, arg): seen.append(event)
        def leaf(): pass
        def nested():
            with inner: leaf()
        sys.setprofile(other)
        with nvtx.Profile(): leaf()
        assert sys.getprofile() is other
        count = len(seen); leaf(); assert len(seen) > count
        sys.setprofile(None)
        inner = nvtx.Profile(linenos=False, annotate_cfuncs=False)
        with nvtx.Profile(annotate_cfuncs=False):
            nested()
            leaf()
        assert sys.getprofile() is None
        with nvtx.Profile():
            sys.setprofile(other)
            leaf()
        assert sys.getprofile() is other
        """
    )
    found = calls(events)
    assert ("leaf", "<string>:7(nested)") in found
    assert found.count(("<string>:6(leaf)", None)) == 2


def test_a_tool_that_comes_later_hears_what_follows(record: Record, tool: Path) -> None:
    events = record(
        f"""
        import os, warplens.nvtx as nvtx
        def leaf(): pass
        def attach():
            os.environ["NVTX_INJECTION64_PATH"] = {str(tool)!r}
            assert nvtx.attached()
        nvtx.mark("asked before")
        with nvtx.Profile(annotate_cfuncs=False):
            leaf(); attach(); leaf()
        """,
        "push",
        "pop",
        NVTX_INJECTION64_PATH="",
    )
    assert [(event["event"], event.get("message")) for event in events] == [
        ("push", "<string>:3(leaf)"),
        ("pop", None),
    ]


def test_a_profile_is_silent_without_the_binding_and_with_nvtx_disable() -> None:
    code = """
        import sys, warplens.nvtx as nvtx
        with nvtx.Profile(linenos=False) as profile: assert sys.getprofile() is None
        profile.enable(); profile.disable()
        assert (profile.linenos, profile.annotate_cfuncs) == (False, True)
    """
    run_python(code, NVTX_DISABLE="1")
    run_python(
        'import sys; sys.modules["warplens.nvtx._binding"] = None\n'
        + "\n".join(line[8:] for line in code.splitlines())
    )


@pytest.mark.slow
def test_deep_recursion(heard: Heard) -> None:
    events = heard(
        """
        import sys
        # Where every profiler (cProfile, too) makes CPython recurse in C, 8 MiB of stack end before 20000 calls.
        sys.setrecursionlimit(20000 if sys.version_info >= (3, 11) else 10000)
        def deep(n): return n and deep(n - 1)
        with nvtx.Profile(linenos=False): deep(5000)
        def endless(): endless()
        with nvtx.Profile(linenos=False, annotate_cfuncs=False), contextlib.suppress(RecursionError): endless()
        """
    )
    assert [name for name, _ in calls(events)].count("deep") == 5001
