"""What reaches a tool: the right events with the right attributes, for every way to make one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.unit.nvtx.conftest import ROOT, Event, Record

pytestmark = [pytest.mark.require("native"), pytest.mark.require("gcc")]

BLUE = 0x0000FF
KINDS = ("push", "pop", "mark", "start", "end")


def said(event: Event) -> tuple[object, ...]:
    """What an event says, shortly."""
    return tuple(event.get(name) for name in ("event", "domain", "message", "color", "category", "payload"))


def test_a_with_block_is_a_push_and_a_pop(record: Record) -> None:
    events = record("import warplens.nvtx as nvtx\nwith nvtx.annotate('x'):\n  nvtx.mark('in')", *KINDS)
    assert [said(event) for event in events] == [
        ("push", None, "x", BLUE, 0, None),
        ("mark", None, "in", BLUE, 0, None),
        ("pop", None, None, None, None, None),
    ]
    assert {(event["version"], event["size"], event["color_type"]) for event in events[:2]} == {(3, 48, 1)}


def test_every_argument_arrives(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        given = dict(color="red", domain="d", category="c", payload=-5)
        with nvtx.annotate("annotated", **given): pass
        @nvtx.annotate(**given)
        def decorated(): pass
        decorated()
        nvtx.push_range("pushed", **given); nvtx.pop_range("d")
        nvtx.mark("marked", **given)
        nvtx.end_range(nvtx.start_range("started", **given))
        domain = nvtx.get_domain("d"); del given["domain"]
        attributes = domain.get_event_attributes("attributes", **given)
        domain.push_range(attributes); domain.pop_range()
        domain.mark(attributes, message="changed")
        domain.end_range(domain.start_range(message="keywords", **given))
        nvtx.get_domain("other").mark(attributes)
    """
    heard = record(code)
    events = [event for event in heard if event["event"] in ("push", "mark", "start")]
    names = [
        "annotated",
        "decorated",
        "pushed",
        "marked",
        "started",
        "attributes",
        "changed",
        "keywords",
        "changed",
    ]
    assert [event["message"] for event in events] == names
    assert {said(event)[3:] for event in events} == {(0xFF0000, 1, -5)}
    assert [event["domain"] for event in events] == ["d"] * 8 + ["other"]
    assert {event["payload_type"] for event in events} == {2}
    assert {event["message_type"] for event in events} == {3}
    categories = [
        (event["domain"], event["id"], event["name"]) for event in heard if event["event"] == "category"
    ]
    assert categories == [("d", 1, "c"), ("other", 1, "c")]
    assert [event["domain"] for event in heard if event["event"] == "domain"] == ["d", "other"]
    assert not [event for event in heard if event["event"] == "domain_destroy"]
    ids = [event["id"] for event in heard if event["event"] in ("start", "end")]
    assert ids[0::2] == ids[1::2]


def test_a_message_is_registered_once(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        for i in range(3):
            for name in ("a", "b", f"f{i % 2}"):
                with nvtx.annotate(name): pass
                with nvtx.annotate(name, domain="d"): pass
    """
    registered = [(event["domain"], event["message"]) for event in record(code, "string")]
    assert sorted(registered, key=str) == sorted(
        ((d, m) for d in (None, "d") for m in ("a", "b", "f0", "f1")), key=str
    )


@pytest.mark.slow
def test_names_without_end_are_sent_as_text(record: Record) -> None:
    code = """
        import os, warplens.nvtx as nvtx
        for i in range(65600): nvtx.mark(f"name {i}")
        nvtx.mark("long" * 2000)
        nvtx.mark("name 3")
    """
    marks = record(code, "mark")
    assert [event["message"] for event in marks[:65600]] == [f"name {i}" for i in range(65600)]
    assert [event["message_type"] for event in marks[:65600]] == [3] * 65536 + [1] * 64
    assert (marks[-2]["message_type"], marks[-2]["message"]) == (1, "long" * 2000)
    assert (marks[-1]["message_type"], marks[-1]["message"]) == (3, "name 3")


@pytest.mark.slow
def test_a_recycled_address_does_not_bring_back_an_old_name(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        for i in range(5000):
            with nvtx.annotate("name " + str(i)): pass
    """
    assert [event["message"] for event in record(code, "push")] == [f"name {i}" for i in range(5000)]


def test_odd_texts_arrive_readable(record: Record) -> None:
    code = r"""
        import warplens.nvtx as nvtx
        odd = "a\0b\udc80ü"
        with nvtx.annotate(odd, domain=odd, category=odd): pass
        with nvtx.annotate("", domain="e"): pass
        with nvtx.annotate(domain="e"): pass
        nvtx.mark(odd * 1000)
    """
    events = record(code, "push", "mark", "category")
    text = "a\\x00b\\udc80ü"
    assert (events[0]["name"], events[1]["message"], events[1]["domain"]) == (text, text, text)
    assert (events[2]["message"], events[2]["message_type"]) == ("", 3)
    assert (events[3]["message"], events[3]["message_type"]) == (None, 0)
    assert (events[4]["message"], events[4]["message_type"]) == (text * 1000, 1)


@pytest.mark.parametrize(
    ("payload", "kind", "value"),
    [
        ("0", 2, 0),
        ("-2**63", 2, -(2**63)),
        ("2**63-1", 2, 2**63 - 1),
        ("2**63", 1, 2**63),
        ("2**64-1", 1, 2**64 - 1),
        ("0.1", 3, 0.1),
        ("type('Index', (), {'__index__': lambda self: 7})()", 2, 7),
        ("type('Float', (), {'__float__': lambda self: 0.5})()", 3, 0.5),
    ],
)
def test_numbers_are_payloads(record: Record, payload: str, kind: int, value: float) -> None:
    (event,) = record(f"import warplens.nvtx as nvtx\nnvtx.mark('x', payload={payload})", "mark")
    assert (event["payload_type"], event["payload"]) == (kind, value)


@pytest.mark.parametrize(
    "payload",
    ["2**64", "-2**63-1", "object()", "len", "type('Raises', (), {'__float__': lambda self: 1/0})()"],
)
def test_an_unsupported_payload_is_left_out_with_a_warning(record: Record, payload: str) -> None:
    code = f"""
        import warnings, warplens.nvtx as nvtx
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            nvtx.mark("x", payload={payload})
        assert [w.category for w in caught] == [nvtx.NvtxWarning], caught
        assert "the event is recorded without it" in str(caught[0].message) and caught[0].filename == "<string>"
        warnings.simplefilter("error")
        nvtx.mark("y", payload={payload})
    """
    events = record(code, "mark")
    assert [(event["message"], event["payload_type"]) for event in events] == [("x", 0), ("y", 0)]


def test_a_reused_payload_does_not_linger(record: Record) -> None:
    code = """
        import warnings, warplens.nvtx as nvtx
        warnings.simplefilter("ignore")
        domain = nvtx.get_domain("d")
        attributes = domain.get_event_attributes("x", payload=5)
        for payload in (5, len, None, 2.5): domain.mark(attributes, payload=payload)
    """
    events = record(code, "mark")
    assert [(event["payload_type"], event.get("payload")) for event in events] == [
        (2, 5),
        (0, None),
        (0, None),
        (3, 2.5),
    ]


@pytest.mark.parametrize(
    ("color", "argb"),
    [
        ("None", BLUE),
        ("'rapids'", 0x7400FF),
        ("0x80123456", 0x80123456),
        ("'#12aBcD'", 0xFF12ABCD),
        ("-1", 0xFFFFFFFF),
    ],
)
def test_colors_arrive(record: Record, color: str, argb: int) -> None:
    code = f"import warplens.nvtx as nvtx\nnvtx.mark('x', {color})\nwith nvtx.annotate('x', {color}): pass"
    assert [event["color"] for event in record(code, "mark", "push")] == [argb, argb]


def test_numbers_are_categories_without_a_name(record: Record) -> None:
    events = record(
        "import warplens.nvtx as nvtx\nnvtx.mark('x', category=77)\nnvtx.mark('y', category='n')",
        "mark",
        "category",
    )
    assert [(event["event"], event.get("category"), event.get("name")) for event in events] == [
        ("mark", 77, None),
        ("category", None, "n"),
        ("mark", 1, None),
    ]


def test_depths_come_back(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        assert [nvtx.push_range("a"), nvtx.push_range("b"), nvtx.pop_range(), nvtx.pop_range()] == [0, 1, 1, 0]
        assert [domain.push_range(message="a"), nvtx.push_range("b", domain="d"), domain.pop_range()] == [0, 1, 1]
        assert nvtx.pop_range() is None
    """
    assert len(record(code, "push")) == 4


def test_one_annotation_names_each_function_after_itself(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        annotation = nvtx.annotate(color="red")
        @annotation
        def one(): pass
        @annotation
        def two(): pass
        one(); two(); one()
        with annotation: pass
    """
    assert [event["message"] for event in record(code, "push")] == ["one", "two", "one", None]


def test_an_exception_closes_the_range(record: Record) -> None:
    code = """
        import warplens.nvtx as nvtx
        @nvtx.annotate()
        def fails(): raise KeyError("mine")
        for _ in range(2):
            try: fails()
            except KeyError as error: assert error.args == ("mine",) and error.__context__ is None
        try:
            with nvtx.annotate("x"): raise ValueError
        except ValueError: pass
        assert nvtx.push_range("depth") == 0
    """
    kinds = [event["event"] for event in record(code, *KINDS)]
    assert kinds == ["push", "pop"] * 3 + ["push"]


@pytest.mark.slow
def test_ranges_that_wait_do_not_close_each_other(record: Record) -> None:
    code = """
        import asyncio, warplens.nvtx as nvtx
        @nvtx.annotate(domain="d", payload=1)
        async def first(): await asyncio.sleep(0.001)
        @nvtx.annotate("named")
        async def second():
            await asyncio.sleep(0.02)
            raise KeyError
        async def both(): await asyncio.gather(first(), second(), return_exceptions=True)
        asyncio.run(both())
        @nvtx.annotate()
        def generator():
            yield 1
        list(generator())
    """
    events = record(code, *KINDS)
    assert [(event["event"], event.get("message")) for event in events] == [
        ("start", "first"),
        ("start", "named"),
        ("end", None),
        ("end", None),
        ("start", "generator"),
        ("end", None),
    ]
    assert [event["id"] for event in events[:2]] == [event["id"] for event in events[2:4]]
    assert (events[0]["domain"], events[0]["payload"]) == ("d", 1)


def test_a_range_ends_on_any_thread_and_once(record: Record) -> None:
    code = """
        import threading, warplens.nvtx as nvtx
        open_range = nvtx.start_range("x", domain="d")
        thread = threading.Thread(target=nvtx.end_range, args=(open_range,))
        thread.start(); thread.join()
        nvtx.end_range(open_range)
    """
    start, end = record(code, "start", "end")
    assert (start["id"], start["domain"]) == (end["id"], end["domain"])
    assert start["tid"] != end["tid"]


def test_threads_record_what_they_do(record: Record) -> None:
    code = """
        import threading, warplens.nvtx as nvtx
        shared = nvtx.annotate("shared", domain="d", category="c", payload=1)
        @shared
        def work(name):
            for i in range(50):
                with nvtx.annotate(f"{name} {i}"): pass
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    events = record(code, "push", "pop")
    for thread in {event["tid"] for event in events}:
        own = [event for event in events if event["tid"] == thread]
        pushes = [event["message"] for event in own if event["event"] == "push"]
        assert pushes[0] == "shared"
        assert pushes[1:] == [f"{pushes[1][0]} {i}" for i in range(50)]
        assert len(own) == 102
    assert len(events) == 408


def test_a_fork_keeps_recording(record: Record) -> None:
    code = """
        import os, warplens.nvtx as nvtx
        nvtx.mark("parent")
        child = os.fork()
        if child == 0:
            nvtx.mark("child")
            os._exit(0)
        os.waitpid(child, 0)
    """
    assert [event["message"] for event in record(code, "mark")] == ["parent", "child"]


@pytest.mark.slow
@pytest.mark.require("nvtx")
def test_the_same_program_says_the_same_with_pypi_nvtx(record: Record) -> None:
    program = """
        with nvtx.annotate("a"): pass
        with nvtx.annotate("b", color="green", domain="d", category="c", payload=3): pass
        with nvtx.annotate(color=0x12345678, category=9, payload=0.5): pass
        @nvtx.annotate(domain="d", category="c2")
        def function(): nvtx.mark("inside", "orange")
        function()
        nvtx.push_range("pushed", domain="d", category="c"); nvtx.pop_range(domain="d")
        nvtx.end_range(nvtx.start_range("started", color=None, payload=1))
        domain = nvtx.get_domain("own")
        attributes = domain.get_event_attributes(message="m", color="red", category="k", payload=4)
        domain.push_range(attributes); domain.push_range(attributes, message="m2", payload=None); domain.pop_range(); domain.pop_range()
        domain.mark(message="kw", category=domain.get_category_id("k2"))
        domain.end_range(domain.start_range(attributes))
        attributes.message = domain.get_registered_string("set")
        domain.mark(attributes)
    """

    def heard(library: str) -> list[Event]:
        events = record(
            f"import {library} as nvtx\n" + "\n".join(line[8:] for line in program.splitlines()),
            *KINDS,
            "category",
        )
        base = min((event["id"] for event in events if event["event"] in ("start", "end")), default=0)
        for event in events:
            event.pop("tid")
            if event["event"] in ("start", "end"):
                event["id"] -= base
                event["domain"] = None if event["event"] == "end" else event["domain"]
            if event["domain"] == "":
                event["domain"] = None
        return events

    ours, theirs = heard("warplens.nvtx"), heard("nvtx")
    assert [e for e in ours if e["event"] != "category"] == [e for e in theirs if e["event"] != "category"]
    names = [
        {(e["domain"], e["id"], e["name"]) for e in events if e["event"] == "category"}
        for events in (ours, theirs)
    ]
    assert names[0] == names[1]


def test_a_broken_tool_does_not_break_the_program(record: Record) -> None:
    code = "import warplens.nvtx as nvtx\nassert not nvtx.attached()\nwith nvtx.annotate('x'): nvtx.mark('y')"
    assert record(code, NVTX_INJECTION64_PATH="/nowhere/libmissing.so") == []
    assert record(code, NVTX_INJECTION64_PATH="/dev/null") == []


@pytest.mark.slow
def test_a_tool_written_without_every_call_is_fine(record: Record, tmp_path: object) -> None:
    # A tool without strings: messages travel as text.
    source = (
        (ROOT / "tests" / "targets" / "nvtx" / "nvtx_tool.c")
        .read_text()
        .replace("*table[10] = (void *)make_string;", "")
    )
    target = f"{tmp_path}/libless.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-w", "-", "-o", target, "-lpthread"]
    subprocess.run(command, input=source, text=True, check=True)
    assert sys.platform == "linux"
    events = record("import warplens.nvtx as nvtx\nnvtx.mark('ü\\0')", "mark", NVTX_INJECTION64_PATH=target)
    assert [(event["message_type"], event["message"]) for event in events] == [(1, "ü\\x00")]
