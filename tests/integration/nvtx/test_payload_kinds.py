"""The table of payload kinds in docs/explain/annotate.md, row by row, from Python to the report."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from tests.integration.nvtx.test_edges import complaints, record
from tests.support.reports.querying import rows
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]

EVENTS = """
    SELECT m.message, m.payload_int, m.payload_float, p.type, p.data, p.json FROM nvtx_marks m
    LEFT JOIN payloads p ON p.event = m.id AND p.event_type = 'mark' ORDER BY m.start"""
SEND = "\nfor number, payload in enumerate(PAYLOADS):\n    nvtx.mark(str(number), payload=payload)\n"


def sent(folder: Path, payloads: str, imports: str = "") -> list[tuple[Any, ...]]:
    """What the report says of marks with these payloads: int, float, type, bytes, JSON."""
    _, report = record(
        folder, f"import warnings\nwarnings.simplefilter('error')\n{imports}\nPAYLOADS = {payloads}{SEND}"
    )
    assert complaints(report) == []
    return [row[1:] for row in rows(report, EVENTS)]


def test_numbers_are_columns(tmp_path: Path) -> None:
    got = sent(
        tmp_path,
        "[1, -5, 2**63 - 1, 2**64 - 1, 1.5, nvtx.uint64(2**64 - 1), nvtx.int64(-1), nvtx.uint32(7), nvtx.int32(-7),"
        " nvtx.float64(0.1), nvtx.float32(0.5)]",
    )
    ints = [1, -5, 2**63 - 1, -1, None, -1, -1, 7, -7, None, None]
    floats = [None, None, None, None, 1.5, None, None, None, None, 0.1, 0.5]
    assert got == [(i, f, None, None, None) for i, f in zip(ints, floats, strict=True)]


def test_numbers_of_numpy_are_columns(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    got = sent(
        tmp_path,
        "[np.int64(-3), np.uint64(4), np.int32(-5), np.int8(-6), np.uint16(7), np.float64(0.1), np.float32(0.5), np.float16(1.5)]",
        "import numpy as np",
    )
    assert [row[0] for row in got[:5]] == [-3, 4, -5, -6, 7]
    assert [row[1] for row in got[5:]] == [0.1, 0.5, 1.5]


def test_texts_and_single_values_have_types(tmp_path: Path) -> None:
    got = sent(tmp_path, "['grüße', True, False, 1 + 2j]")
    assert [row[2] for row in got] == ["warplens.str", "bool", "bool", "complex128"]
    assert got[0][3].rstrip(b"\0").decode() == "grüße"
    assert [row[3] for row in got[1:3]] == [b"\1", b"\0"]
    assert struct.unpack("dd", got[3][3]) == (1.0, 2.0)


def test_arrays_are_lengths_and_values(tmp_path: Path) -> None:
    got = sent(
        tmp_path,
        "[b'hello', bytearray(b'hi'), memoryview(b'm'), [1, 2], (1.5, 2.0), range(3), array('f', [0.5])]",
        "from array import array",
    )
    assert all(row[:2] == (None, None) and row[4] is None for row in got)
    assert [row[3][:8] for row in got] == [struct.pack("<Q", n) for n in (5, 2, 1, 2, 2, 3, 1)]
    assert [row[3][8:] for row in got[:3]] == [b"hello", b"hi", b"m"]
    assert [row[2] for row in got[3:]] == ["int64[:]", "float64[:]", "int64[:]", "float32[:]"]
    assert struct.unpack("3q", got[5][3][8:]) == (0, 1, 2)


def test_arrays_of_numpy_keep_shape_and_fields(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    got = sent(
        tmp_path,
        "[np.arange(6.0).reshape(2, 3), np.array((3.14, 7), dtype=[('x', 'f8'), ('y', 'i4')]), np.array([True, False])]",
        "import numpy as np",
    )
    assert got[0][2] == "float64[:,:]"
    assert got[0][3] == struct.pack("<QQ", 2, 3) + np.arange(6.0).tobytes()
    assert struct.unpack("<di", got[1][3]) == (3.14, 7)
    assert got[2][3][-2:] == b"\1\0"


def test_dictionaries_are_typed_columns_and_nested_ones_json(tmp_path: Path) -> None:
    payloads = "[{'step': 1, 'loss': 0.5}, {'step': 2, 'loss': 0.25}, {'a': {'b': [1, 2]}}, [1, 'x', None]]"
    _, report = record(tmp_path, f"PAYLOADS = {payloads}{SEND}")
    with open_report(report) as opened:
        typed = opened.payloads("dict").select(["step", "loss"]).to_pylist()
    assert typed == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
    assert [row[5] for row in rows(report, EVENTS)][2:] == ['{"a":{"b":[1,2]}}', '[1,"x",null]']


def test_an_unsupported_payload_warns_once(tmp_path: Path) -> None:
    program = """
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        nvtx.mark("object", payload=object())
        nvtx.mark("large", payload=1 << 70)
print(len(seen), {warning.category.__name__ for warning in seen})
"""
    out, report = record(tmp_path, program)
    assert out == "2 {'NvtxWarning'}\n"
    assert rows(report, "SELECT count(*)::INT FROM nvtx_marks") == [(6,)]
    assert rows(report, "SELECT count(*)::INT FROM payloads") == [(0,)]


def test_payloads_of_the_end_and_of_the_beginning(tmp_path: Path) -> None:
    program = """
nvtx.push_range("both", payload=[1])
nvtx.pop_range(payload=[1, 2])
with nvtx.start_end_range("late") as span:
    span.payload = {"rows": 3}
nvtx.push_range("said again", color="red")
nvtx.pop_range(message="said at the end", color="green", category="kind")
"""
    _, report = record(tmp_path, program)
    ends = """
        SELECT r.message, p.at_end, p.type FROM nvtx_ranges r JOIN payloads p ON p.event = r.id AND p.event_type = 'range'
        ORDER BY r.start, p.at_end"""
    assert rows(report, ends) == [
        ("both", False, "int64[:]"),
        ("both", True, "int64[:]"),
        ("late", True, "dict"),
    ]
    said = "SELECT message, color, category FROM nvtx_ranges ORDER BY start DESC LIMIT 1"
    assert rows(report, said) == [("said at the end", 0x008000, "kind")]


def test_a_number_at_the_end_is_the_ranges_number(tmp_path: Path) -> None:
    program = """
with nvtx.annotate("int") as span:
    span.payload = 5
nvtx.end_range(nvtx.start_range("float"), payload=0.5)
nvtx.push_range("with more")
nvtx.pop_range(payload=-3, message="renamed", color="red", category="kind")
"""
    _, report = record(tmp_path, program)
    numbers = "SELECT message, payload_int, payload_float FROM nvtx_ranges ORDER BY start"
    assert rows(report, numbers) == [("int", 5, None), ("float", None, 0.5), ("renamed", -3, None)]
    assert rows(report, "SELECT type FROM payloads") == []
    assert rows(report, "SELECT name FROM nvtx_schemas") == []


def test_a_number_at_the_end_is_kept_beside_the_payload_of_the_beginning(tmp_path: Path) -> None:
    program = """
nvtx.push_range("two numbers", payload=1)
nvtx.pop_range(payload=2.5)
nvtx.push_range("dict first", payload={"a": 1})
nvtx.pop_range(payload=9)
nvtx.push_range("dict last", payload=7)
nvtx.pop_range(payload={"a": 1})
"""
    _, report = record(tmp_path, program)
    numbers = "SELECT message, payload_int, payload_float FROM nvtx_ranges ORDER BY start"
    assert rows(report, numbers) == [
        ("two numbers", None, 2.5),
        ("dict first", 9, None),
        ("dict last", 7, None),
    ]
    both = "SELECT at_end, type, data FROM payloads ORDER BY event, at_end"
    one, two, nine, seven = (
        struct.pack("<q", 1),
        struct.pack("<d", 2.5),
        struct.pack("<q", 9),
        struct.pack("<q", 7),
    )
    assert rows(report, both) == [
        *((False, "int64", one), (True, "float64", two)),
        *((False, "dict", one), (True, "int64", nine)),
        *((False, "int64", seven), (True, "dict", one)),
    ]


def test_reused_attributes_carry_nothing_over(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    program = """
import gc, warnings
import numpy as np
warnings.simplefilter("ignore")
domain = nvtx.get_domain()
event = domain.get_event_attributes(message="reused", payload=12345)
for payload in (object(), np.arange(1000.0), np.zeros(0), None, {1, 2}, [], 7):
    event.payload = payload
    del payload
    gc.collect()
    domain.mark(event)
"""
    _, report = record(tmp_path, program)
    got = [(row[1], row[2], row[3], row[4] and len(row[4])) for row in rows(report, EVENTS)]
    nothing = (None, None, None, None)
    sizes = [nothing, (None, None, "float64[:]", 8008), (None, None, "float64[:]", 8), nothing]
    assert got[:4] == sizes
    assert got[-1] == (7, None, None, None)
    assert 12345 not in [row[0] for row in got]
