"""Payloads that misbehave while they are read, or are larger than anybody needs: the event stays, the program too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.nvtx.test_edges import complaints, record
from tests.support.reports.querying import rows

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]

HOSTILE = """
import array, collections, sys, threading, warnings
warnings.simplefilter("ignore")

class Raises:
    def __len__(self): raise RuntimeError("len")
    def __iter__(self): raise RuntimeError("iter")
    def __getitem__(self, key): raise RuntimeError("getitem")
    def __index__(self): raise RuntimeError("index")
    def __float__(self): raise RuntimeError("float")
    def __str__(self): raise RuntimeError("str")
    __repr__ = __str__
    @property
    def __array_interface__(self): raise RuntimeError("interface")
    @property
    def __array_struct__(self): raise RuntimeError("struct")
    def __array__(self, *args, **kwargs): raise RuntimeError("array")

class Liar:
    def __len__(self): return 1 << 40
    def __getitem__(self, key): return 1

class Negative:
    def __len__(self): return -1

class Shrinking(list):
    def __iter__(self):
        for item in list.__iter__(self):
            self.clear()
            yield item

class Evil:
    def __init__(self, victim): self.victim = victim
    def __index__(self): self.victim.clear(); return 7
    def __float__(self): self.victim.clear(); return 7.0
    def __str__(self): self.victim.clear(); return "evil"
    def __eq__(self, other): self.victim.clear(); return True
    def __hash__(self): return 1

class OddDict(dict):
    def items(self): raise RuntimeError("items")
    def keys(self): return ["no", "such", "keys"]
    def __iter__(self): raise RuntimeError("iter")

class Name(str):
    def __str__(self): raise RuntimeError("str of a str")
    def __eq__(self, other): raise RuntimeError("eq of a str")
    __hash__ = str.__hash__

mutating_list = []
mutating_list += [1, Evil(mutating_list), 3]
mutating_dict = {}
mutating_dict.update(a=1, b=Evil(mutating_dict), c=3)
circle = []
circle += [1, circle]
knot = {}
knot["self"] = knot
deep = leaf = []
for _ in range(100_000):
    leaf.append([])
    leaf = leaf[0]
released = memoryview(bytearray(b"gone"))
released.release()
strided = memoryview(bytearray(100))[::7]
payloads = [
    Raises(), Liar(), Negative(), [Raises()], (Raises(), 1), {"a": Raises()}, Shrinking([1, 2, 3]), mutating_list, mutating_dict,
    circle, knot, deep, released, strided, OddDict(a=1), {Name("key"): 1}, Name("text"), {1: 2}, {"": 1}, {"a\\0b": 1}, {None: None},
    {"a": 1 << 100}, [1 << 100], 1 << 100, -(1 << 64), [1, None], [True, 2.5], [float("nan"), float("inf")], {"nan": float("nan")},
    "text \\0 inside", "half \\ud800", ["half \\ud800"], {"half \\ud800": 1}, b"\\0" * 3, bytearray(b"abc"), array.array("d", [1.0]),
    [], (), {}, "", b"", range(0), range(1 << 40), range(3, -3, -2), {1, 2}, frozenset(), type, len, sys, iter([1]),
    (number for number in (1, 2)), Ellipsis, collections.OrderedDict(a=1), collections.namedtuple("Pair", "a b")(1, 2),
    collections.deque([1]), 1 + 2j, lambda: 1,
]
"""

NUMPY = """
import numpy
base = numpy.arange(12.0)
objects = numpy.empty(2, object)
objects[0] = Raises()
broken = numpy.ndarray.__new__(type("Sub", (numpy.ndarray,), {"__array_finalize__": lambda self, other: None}), (3,))
payloads += [
    objects, numpy.array([], dtype=float), numpy.zeros((0, 5)), numpy.zeros((2, 0, 3)), base[::-2], base.reshape(3, 4).T,
    base.reshape(2, 3, 2)[:, ::2], numpy.array(7), numpy.array("text"), numpy.array(["a", "bcd"]), numpy.array(b"x"), numpy.zeros(3, ">i4"),
    numpy.zeros(3, "M8[ns]"), numpy.zeros(2, "m8[s]"), numpy.zeros(2, "c16"), numpy.zeros(2, "f2"), numpy.longdouble(1),
    numpy.zeros(2, [("a", "i4"), ("b", "f8", (2, 3)), ("c", [("d", "U3")])]), numpy.zeros(1, []), numpy.bool_(True),
    numpy.zeros(2, {"names": ["a"], "formats": ["u1"], "offsets": [5]}), numpy.zeros(2, [(("title", "name"), "i8")]),
    numpy.zeros(2, "V7"), numpy.zeros(2, "S0"), numpy.uint64(2**64 - 1), numpy.float16(1.5), numpy.datetime64("2020"),
    numpy.str_("text"), numpy.ma.array([1, 2], mask=[0, 1]), numpy.matrix([[1, 2]]), broken,
    numpy.broadcast_to(1, (10, 100, 100)), numpy.zeros(3)[None, :, None],
]
"""

SEND = """
for number, payload in enumerate(payloads):
    with nvtx.annotate("annotated", payload=payload):
        pass
    nvtx.mark("marked", payload=payload)
    nvtx.push_range("pushed", payload=payload)
    nvtx.pop_range()
    nvtx.end_range(nvtx.start_range("started", payload=payload))
    domain = nvtx.get_domain("domain")
    attributes = domain.get_event_attributes(message="attributes", payload=payload)
    domain.mark(attributes)
    attributes.payload = payload
    domain.mark(attributes, payload=None)
print(len(payloads))
"""


@pytest.mark.parametrize("more", ["", NUMPY], ids=["plain", "numpy"])
def test_hostile_payloads_cost_themselves_alone(more: str, tmp_path: Path) -> None:
    if more:
        pytest.importorskip("numpy")
    out, report = record(tmp_path, HOSTILE + more + SEND)
    count = int(out)
    ranges = "SELECT message, count(*)::INT FROM nvtx_ranges GROUP BY message ORDER BY message"
    assert rows(report, ranges) == [(name, count) for name in ("annotated", "pushed", "started")]
    assert rows(report, "SELECT count(*)::INT FROM nvtx_marks") == [(3 * count,)]
    assert rows(
        report,
        "SELECT count(*)::INT FROM nvtx_marks m SEMI JOIN payloads p ON p.event = m.id AND p.event_type = 'mark'",
    ) > [(10,)]
    # cut ones are told; a schema that the report cannot read would be told as well
    assert set(complaints(report)) <= {"cut-payloads", "cut-names"}


def test_a_payload_that_another_thread_changes_while_it_is_read(tmp_path: Path) -> None:
    program = """
import threading, time, warnings
warnings.simplefilter("ignore")
numbers, words, stop = list(range(1000)), {"a": 1}, False
def change():
    step = 0
    while not stop:
        step += 1
        numbers[:] = range(step % 2000)
        words.clear()
        words.update({f"key {n}": n for n in range(step % 50)})
threads = [threading.Thread(target=change) for _ in range(2)]
for thread in threads:
    thread.start()
end = time.monotonic() + 0.5
sent = 0
while time.monotonic() < end:
    nvtx.mark("list", payload=numbers)
    nvtx.mark("dict", payload=words)
    sent += 2
stop = True
for thread in threads:
    thread.join()
print(sent)
"""
    out, report = record(tmp_path, program)
    assert rows(report, "SELECT count(*)::INT FROM nvtx_marks") == [(int(out),)]
    assert set(complaints(report)) <= {"cut-payloads"}


def test_huge_payloads(tmp_path: Path) -> None:
    program = """
nvtx.mark("bytes", payload=bytes(64 << 20))
nvtx.mark("text", payload="x" * (16 << 20))
nvtx.mark("list", payload=list(range(1_000_000)))
nvtx.mark("json", payload=[{"key": number} for number in range(100_000)])
nvtx.mark("small", payload=[1, 2, 3])
"""
    _, report = record(tmp_path, program)
    sizes = """
        SELECT m.message, p.cut, coalesce(octet_length(p.data), strlen(p.json))::BIGINT FROM nvtx_marks m
        JOIN payloads p ON p.event = m.id AND p.event_type = 'mark' ORDER BY m.start"""
    got = {name: (cut, size) for name, cut, size in rows(report, sizes)}
    assert got["small"] == (False, 32)
    assert all(cut for name, (cut, _) in got.items() if name != "small")
    assert rows(report, "SELECT count(*)::INT FROM nvtx_marks") == [(5,)]
    assert complaints(report) == ["cut-payloads"]


def test_dictionaries_of_a_thousand_shapes(tmp_path: Path) -> None:
    """The first few hundred shapes get a schema each, the others are JSON: none is lost."""
    program = """
for number in range(1000):
    nvtx.mark("shape", payload={f"key{number}": number, "common": 0.5})
"""
    _, report = record(tmp_path, program)
    ((schemas,),) = rows(report, "SELECT count(*)::INT FROM nvtx_schemas WHERE kind = 'static'")
    assert 1 < schemas <= 260
    kinds = rows(report, "SELECT count(data)::INT, count(json)::INT FROM payloads")
    assert kinds[0][0] + kinds[0][1] == 1000
    assert kinds[0][1] >= 700
    ((last,),) = rows(
        report,
        "SELECT p.json FROM payloads p JOIN nvtx_marks m ON m.id = p.event AND p.event_type = 'mark' ORDER BY m.start DESC LIMIT 1",
    )
    assert json.loads(last) == {"key999": 999, "common": 0.5}
    assert complaints(report) == []


def test_a_list_payload_is_read_at_each_entry(tmp_path: Path) -> None:
    program = """
numbers = [1]
annotation = nvtx.annotate("x", payload=numbers)
for number in range(3):
    with annotation:
        pass
    numbers.append(number)
"""
    _, report = record(tmp_path, program)
    got: list[Any] = rows(
        report,
        "SELECT octet_length(p.data)::INT FROM payloads p JOIN nvtx_ranges r ON r.id = p.event ORDER BY r.start",
    )
    assert got == [(16,), (24,), (32,)]
