"""Domains that end, names, resources, synchronisation objects, start/end blocks, colours: what goes beyond PyPI nvtx."""

from __future__ import annotations

import pickle
import sys
import sysconfig
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.unit.nvtx.conftest import Record, run_python
from warplens import nvtx
from warplens.nvtx import _absent, _binding, colors

pytestmark = pytest.mark.require("native")


FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.skipif(
    FREE_THREADED, reason="destroy() does nothing without a GIL: other threads may use the domain"
)
@pytest.mark.require("gcc")
def test_a_domain_ends_only_when_nothing_uses_it(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        with nvtx.get_domain("short") as domain:
            domain.push_range(message="in short"); domain.pop_range()
            with nvtx.get_domain("short"): pass
        kept = nvtx.annotate("kept", domain="held")
        with kept: pass
        assert nvtx.get_domain("held").destroy() is False
        @nvtx.annotate(domain="decorated")
        def function(): pass
        function()
        attributes = nvtx.get_domain("attributes").get_event_attributes("x")
        counter = nvtx.get_domain("counter").get_counter("c", int); counter.sample(1)
        text = nvtx.get_domain("string").get_registered_string("s")
        for name in ("decorated", "attributes", "counter", "string"): assert not nvtx.get_domain(name).destroy()
        assert not nvtx.get_domain().destroy() and not nvtx.get_domain("never used").destroy()
        del kept
        assert nvtx.get_domain("held").destroy() is True
        with nvtx.annotate("again", domain="held"): pass
        domain.push_range(message="in short"); domain.pop_range()
    """
    events = record(code, "domain", "domain_destroy", "push", "string")
    told = [
        (event["event"], event["domain"], event.get("message"))
        for event in events
        if event["domain"] in ("short", "held")
    ]
    short = [("domain", "short", None), ("string", "short", "in short"), ("push", "short", "in short")]
    held = ("domain", "held", None)
    assert told == [
        *short,
        ("domain_destroy", "short", None),
        held,
        ("string", "held", "kept"),
        ("push", "held", "kept"),
        ("domain_destroy", "held", None),
        held,
        ("string", "held", "again"),
        ("push", "held", "again"),
        *short,
    ]


@pytest.mark.require("gcc")
def test_a_second_object_of_a_domain_destroys_nothing(record: Record) -> None:
    code = """
        import gc, warplens.nvtx as nvtx
        first = nvtx.get_domain("d"); first.mark(message="x")
        second = nvtx.Domain("d"); assert second is first
        del second; gc.collect()
        first.mark(message="y")
    """
    assert record(code, "domain_destroy") == []


@pytest.mark.require("gcc")
def test_ranges_blocks_and_functions_of_a_domain(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        with domain.annotate("block", "red", category="c", payload=1): pass
        @domain.annotate()
        def function(): pass
        function()
        with domain.annotate(domain.get_event_attributes("ready", color=5)): pass
        with domain.annotate(domain.get_registered_string("registered")): pass
        with domain.start_end_range("overlapping", category=7) as r: pass
        with nvtx.start_end_range("outer", domain="d") as outer, outer: pass
    """
    events = [
        event
        for event in record(code, "push", "start", "end")
        if event["event"] != "end" or event["domain"] == "d"
    ]
    begun = [event for event in events if "message" in event]
    assert [(event["event"], event["domain"], event["message"], event["color"], event["category"]) for event in begun] == [
        ("push", "d", "block", 0xFF0000, 1),
        ("push", "d", "function", 0xFF, 0),
        ("push", "d", "ready", 5, 0),
        ("push", "d", "registered", 0xFF, 0),
        ("start", "d", "overlapping", 0xFF, 7),
        ("start", "d", "outer", 0xFF, 0),
        ("start", "d", "outer", 0xFF, 0),
    ]  # fmt: skip
    opened = [event["id"] for event in events if event["event"] == "start"]
    closed = [event["id"] for event in events if event["event"] == "end"]
    assert closed == [opened[0], opened[2], opened[1]]


@pytest.mark.require("gcc")
def test_depths_are_returned(record: Record) -> None:
    record("""
        import warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        assert [nvtx.push_range("x"), nvtx.push_range("y"), nvtx.pop_range(), nvtx.pop_range(payload=1)] == [0, 1, 1, 0]
        assert [domain.push_range(message="x"), domain.pop_range()] == [0, 0]
    """)


@pytest.mark.require("gcc")
def test_categories_are_named_by_number(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        nvtx.name_category(1, "training", domain="d"); domain.name_category(7, "validation"); nvtx.name_category(3, "default")
        assert [domain.get_category_id(name) for name in ("training", "validation", "other", "training")] == [1, 7, 3, 1]
        domain.mark(message="x", category="validation"); domain.mark(message="x", category=1)
    """
    events = record(code, "category", "mark")
    assert [(event["domain"], event["id"], event["name"]) for event in events if event["event"] == "category"] == [
        ("d", 1, "training"), ("d", 7, "validation"), (None, 3, "default"), ("d", 3, "other")]  # fmt: skip
    assert [event["category"] for event in events if event["event"] == "mark"] == [7, 1]


@pytest.mark.require("gcc")
def test_threads_and_cuda_objects_are_named(record: Record) -> None:
    code = """
        import threading, warplens.nvtx as nvtx
        class Stream: cuda_stream = 0x10
        class Handle: value = 0x20
        class Event: handle = Handle()
        nvtx.name_thread("main"); nvtx.name_thread("other", 12345)
        nvtx.name_cuda_device(1, "gpu"); nvtx.name_cuda_stream(Stream(), "copy"); nvtx.name_cuda_event(Event(), "done")
        nvtx.name_cuda_context(0x30, "context")
        for wrong in ("x", object()):
            try: nvtx.name_cuda_stream(wrong, "x")
            except TypeError as error: assert "object that has a handle" in str(error)
            else: raise AssertionError
        print(threading.get_native_id())
    """
    events = record(code, "name_thread", "cuda_device", "cuda_stream", "cuda_event", "cu_context")
    assert [(event["event"], event["id"], event["name"]) for event in events] == [
        ("name_thread", events[0]["tid"], "main"), ("name_thread", 12345, "other"), ("cuda_device", 1, "gpu"),
        ("cuda_stream", 0x10, "copy"), ("cuda_event", 0x20, "done"), ("cu_context", 0x30, "context")]  # fmt: skip


@pytest.mark.require("gcc")
def test_a_tool_that_comes_later_is_told_the_names(record: Record) -> None:
    code = """
        import os, warplens.nvtx as nvtx
        tool = os.environ.pop("NVTX_INJECTION64_PATH")
        nvtx.name_thread("early", 77); nvtx.name_category(5, "five", domain="d")
        counter = nvtx.get_domain("d").get_counter("c", int); counter.sample(1)
        annotation = nvtx.annotate("x", payload={"a": 1})
        with annotation: pass
        os.environ["NVTX_INJECTION64_PATH"] = tool
        assert nvtx.attached()
        counter.sample(2)
        with annotation: pass
    """
    events = record(code, "name_thread", "category", "counter", "sample_int64", "push")
    assert [(event["event"], event.get("name"), event.get("value")) for event in events] == [
        ("name_thread", "early", None), ("category", "five", None), ("counter", "c", None),
        ("sample_int64", None, 2), ("push", None, None)]  # fmt: skip
    assert len(events[-1]["payloads"]) == 1


@pytest.mark.require("gcc")
def test_resources_and_locks(record: Record) -> None:
    code = """
        import threading, warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        with domain.create_resource("buffer", 0x1000) as buffer: pass
        buffer.destroy()
        kinds = [domain.create_resource("k", 1, kind) for kind in ("handle", "thread", "pthread", 0x20002)]
        lock = nvtx.Lock("mine", domain="d")
        with lock:
            assert lock.locked()
            assert lock.acquire(blocking=False) is False
            assert lock.acquire(timeout=0.001) is False
        wrapped = nvtx.Lock("re", threading.RLock())
        with wrapped, wrapped: pass
        sync = domain.create_sync("by hand")
        sync.acquire_start(); sync.acquire_success(); sync.releasing(); sync.destroy(); sync.acquire_start()
    """
    names = ("acquire_start", "acquire_failed", "acquire_success", "releasing", "sync_destroy")
    events = record(code, "resource", "resource_destroy", "sync", *names)
    resources = [event for event in events if event["event"].startswith("resource")]
    assert [(e["event"], e.get("message"), e.get("identifier"), e.get("type")) for e in resources] == [
        ("resource", "buffer", 0x1000, 0x10001), ("resource_destroy", None, None, None), ("resource", "k", 1, 0x10002),
        ("resource", "k", 1, 0x10003), ("resource", "k", 1, 0x10004), ("resource", "k", 1, 0x20002)]  # fmt: skip
    by_name = {event["message"]: [e["event"] for e in events if e["event"] in names and e["id"] == event["id"]]
               for event in events if event["event"] == "sync"}  # fmt: skip
    start, failed, success, releasing, destroyed = names
    assert by_name == {
        "mine": [start, success, start, failed, start, failed, releasing],
        "re": [start, success, start, success, releasing, releasing],
        "by hand": [start, success, releasing, destroyed],
    }


@pytest.mark.parametrize("module", [_binding, _absent], ids=["binding", "absent"])
def test_without_a_tool_objects_are_there(module: Any) -> None:
    domain = module.Domain("objects")
    with domain as entered:
        assert entered is domain
    assert domain.destroy() is False
    resource, sync = domain.create_resource("r", 1), domain.create_sync("s")
    assert (resource.name, resource.domain, sync.name, sync.domain) == ("r", domain, "s", domain)
    with resource, sync:
        sync.acquire_start()
        sync.acquire_success()
        sync.releasing()
        sync.acquire_failed()
    with domain.annotate("x", payload=1) as r:
        r.payload = 2
    with domain.start_end_range("x", payload=1) as block:
        assert block.payload == 1
    module.name_thread("x", tid=1)
    module.name_category(1, "x", domain="objects")
    module.name_cuda_stream(1, "x")
    for make in (module.Resource, module.SyncObject):
        with pytest.raises(TypeError):
            make()


def test_locks_lock() -> None:
    lock, seen = nvtx.Lock("counting"), [0]

    def work() -> None:
        for _ in range(500):
            with lock:
                before = seen[0]
                seen[0] = before + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [2000]


@pytest.mark.parametrize("module", [_binding, _absent], ids=["binding", "absent"])
def test_typed_numbers_are_numbers(module: Any) -> None:
    ranges = {
        "int32": (-(2**31), 2**31 - 1),
        "uint32": (0, 2**32 - 1),
        "int64": (-(2**63), 2**63 - 1),
        "uint64": (0, 2**64 - 1),
    }
    for name, (low, high) in ranges.items():
        make = getattr(module, name)
        for number in (low, high):
            assert make(number) == number
            assert isinstance(make(number), int)
            assert (repr(make(number)), str(make(number))) == (f"{name}({number})", str(number))
        for number in (low - 1, high + 1):
            with pytest.raises(OverflowError, match=f"does not fit in {name}"):
                make(number)
        with pytest.raises(TypeError):
            make(1.5)
    assert module.float32(0.5) + 1 == 1.5
    assert repr(module.float64(2)) == "float64(2.0)"
    assert module.float32(float("inf")) == float("inf")
    with pytest.raises(OverflowError):
        module.float32(1e39)
    assert pickle.loads(pickle.dumps(nvtx.uint32(7))) == 7


def test_colours_of_parts() -> None:
    assert nvtx.rgb(0x12, 0x34, 0x56) == 0xFF123456
    assert nvtx.argb(0, 255, 0, 1) == 0x00FF0001
    assert nvtx.rgb(255, 0, 0) == colors.RED
    for wrong in ((256, 0, 0), (0, -1, 0)):
        with pytest.raises(ValueError, match="must be from 0 to 255"):
            nvtx.rgb(*wrong)


def test_the_writer_says_why_it_is_not_there() -> None:
    with pytest.raises(ImportError, match=r"closed backend.*batch_submit"):
        import warplens.nvtx.writer  # noqa: F401


def test_types_are_told() -> None:
    assert (Path(nvtx.__file__).parents[1] / "py.typed").exists()


def test_payloads_that_hold_their_owner_are_collected() -> None:
    run_python("""
        import gc, weakref, warplens.nvtx as nvtx
        class Node: pass
        def cycle(make):
            node, holder = Node(), []
            holder.append(node)
            owner = make(holder)
            holder.append(owner)
            return weakref.ref(node)
        def late(holder):
            made = nvtx.annotate("x"); made.payload = holder
            return made
        domain = nvtx.get_domain("d")
        references = [cycle(make) for make in (
            lambda p: nvtx.annotate("x", payload=p), late,
            lambda p: domain.get_event_attributes("x", payload=p),
            lambda p: nvtx.annotate("x", payload=p)(lambda: None))]
        gc.collect()
        assert [reference() for reference in references] == [None] * 4
    """)


def test_payloads_leak_no_reference() -> None:
    class Unique(int): ...

    values = [Unique(5)]
    before = sys.getrefcount(values[0]), sys.getrefcount(values)
    for _ in range(50):
        with nvtx.annotate("x", payload=values) as r:
            r.payload = values[0]
        nvtx.mark("x", payload={"a": values[0]})
        counter: Any = nvtx.get_domain("leak").get_counter("c", {"a": int})
        counter.sample((values[0],))
    del r
    assert (sys.getrefcount(values[0]), sys.getrefcount(values)) == before


def test_any_number_is_a_kind_of_resource() -> None:
    domain = nvtx.get_domain("kinds")
    for kind in (-1, 0, 5, True, 1 << 40):
        assert domain.create_resource("r", 1, kind=kind).name == "r"


def test_attributes_that_hold_themselves_have_a_repr() -> None:
    attributes = nvtx.get_domain().get_event_attributes(message="m")
    attributes.payload = [attributes]
    assert repr(attributes).count("EventAttributes") == 2
    attributes.payload = None


def test_attributes_that_change_while_they_are_copied_or_shown() -> None:
    """Copying calls the colour's code, showing the payload's: both may replace what is still to be read."""
    attributes = nvtx.get_domain("from").get_event_attributes(message="m" * 100, category="c" * 100)

    class Changes:
        def __repr__(self) -> str:
            attributes.message, attributes.category, attributes.payload = "other" * 100, "another" * 100, None
            return "changed"

    for _ in range(3):
        attributes.payload = Changes()
        assert "changed" in repr(attributes)
        nvtx.get_domain("to").mark(attributes)
