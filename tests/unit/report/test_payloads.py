"""Typed columns, values and texts of extended payloads, for every kind of layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warplens.convert.finish import finish
from warplens.errors import MissingData
from warplens.report import Report
from warplens.report import open as open_report
from warplens.report.payloads.carried import carried
from warplens.testing import spool_writer as sw

FIRST = 1 << 24
FIXED, TERMINATED, BY_ENTRY, POINTER = 0x10, 0x20, 0x30, 2


def report_of(
    tmp_path: Path,
    layouts: Mapping[int, Mapping[str, Any]],
    payloads: Sequence[tuple[int, bytes]],
    flags: int = 0,
) -> Report:
    """A report with a mark for each payload (schema, bytes)."""
    texts = {
        number: sw.definition(**{"kind": "schema", **layout})
        for number, layout in enumerate(layouts.values(), 1)
    }
    chunk, at = sw.blobs(
        0, [sw.blob(data, schema, flags=flags) for schema, data in payloads], sw.first_chunk()
    )
    records = [sw.define(number, schema) for number, schema in enumerate(layouts, 1)]
    records += [sw.event("mark", 10 + number, flags=7, payload=offset) for number, offset in enumerate(at)]
    sw.write(
        tmp_path / "spool",
        sw.spool([chunk, sw.strings({**texts, 100: "registered"}), sw.records(0, records)]),
    )
    finish(tmp_path / "spool", tmp_path / "r.warplens")
    return open_report(tmp_path / "r.warplens")


def entry(name: str, kind: int, flags: int = 0, array: int = 0, offset: int = 0) -> dict[str, Any]:
    return {"name": name, "type": kind, "flags": flags, "array": array, "offset": offset}


def values(report: Report) -> list[Any]:
    return list(
        carried(report, "mark", np.arange(report.tables["nvtx_marks"]), lambda event: event.begin[0]).values()
    )


def columns(table: pa.Table) -> dict[str, list[Any]]:
    return {
        name: column
        for name, column in table.to_pydict().items()
        if name not in ("process", "event_type", "event", "at_end", "cut")
    }


COLOURS = {
    "kind": "enum",
    "name": "colour",
    "size": 2,
    "entries": [{"name": "red", "value": 1}, {"name": "blue", "value": 0xFFFF}],
}
BITS = {
    "kind": "enum",
    "name": "bits",
    "size": 1,
    "entries": [{"name": n, "value": v, "flag": True} for n, v in (("a", 1), ("b", 2), ("c", 8))],
}
TRUTH = {
    "kind": "enum",
    "name": "bool",
    "size": 1,
    "entries": [{"name": "False", "value": 0}, {"name": "True", "value": 1}],
}


def test_a_structure_becomes_columns(tmp_path: Path) -> None:
    inner = {"name": "inner", "type": 1, "entries": [entry("x", 43), entry("y", 43)]}
    whole = {
        "name": "whole",
        "type": 1,
        "entries": [
            entry("n", 15),
            entry("big", 18),
            entry("text", 76, 0, 5),
            entry("colour", FIRST + 1),
            entry("bits", FIRST + 2),
            entry("ok", FIRST + 3),
            entry("inner", FIRST),
            entry("three", 13, FIXED, 3),
            entry("two", FIRST, FIXED, 2),
            entry("raw", 32, FIXED, 2),
            entry("chars", 1, FIXED, 4),
            entry("half", 42),
            entry("brain", 50),
            entry("what", 80),
            entry("event", 17),
        ],
    }
    data = struct.pack(
        "<i4xQ5sxHBBxx2f3hxx4f2s4seHxxQq",
        -1,
        1 << 63,
        b"ab\0cd",
        0xFFFF,
        9,
        1,
        0.5,
        1.5,
        1,
        2,
        3,
        1,
        2,
        3,
        4,
        b"\1\2",
        b"hi\0z",
        0.5,
        0x3FC0,
        100,
        7,
    )
    report = report_of(
        tmp_path,
        {FIRST: inner, FIRST + 1: COLOURS, FIRST + 2: BITS, FIRST + 3: TRUTH, FIRST + 4: whole},
        [(FIRST + 4, data)] * 2,
    )
    expected = {
        "n": -1,
        "big": 1 << 63,
        "text": "ab",
        "colour": "blue",
        "bits": "a|c",
        "ok": True,
        "inner": {"x": 0.5, "y": 1.5},
        "three": [1, 2, 3],
        "two": [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}],
        "raw": b"\1\2",
        "chars": "hi",
        "half": 0.5,
        "brain": 1.5,
        "what": "registered",
        "event": 7,
    }
    table = report.payloads("whole")
    assert table.select(["process", "event_type", "event", "at_end", "cut"]).to_pylist() == [
        {"process": 0, "event_type": "mark", "event": number, "at_end": False, "cut": False}
        for number in range(2)
    ]
    found = columns(table)
    found["event"] = found.pop("payload.event")
    assert found == {name: [value] * 2 for name, value in expected.items()}
    assert table.schema.field("three").type == pa.list_(pa.int16())
    assert table.schema.field("big").type == pa.uint64()
    assert values(report) == [expected] * 2
    assert (
        report.payloads()
        .column("text")[0]
        .as_py()
        .startswith('{n: -1, big: 9223372036854775808, text: "ab", colour: "blue", bits: "a|c", ok: true,')
    )


def test_a_structure_that_is_cut_has_nulls(tmp_path: Path) -> None:
    layout = {"name": "s", "type": 1, "entries": [entry("a", 17), entry("b", 17), entry("c", 15, FIXED, 3)]}
    report = report_of(
        tmp_path,
        {FIRST: layout},
        [
            (FIRST, struct.pack("<qqi", 1, 2, 3)),
            (FIRST, b"12345"),
            (FIRST, struct.pack("<qq3i", 1, 2, 3, 4, 5)),
        ],
        flags=2,
    )
    assert columns(report.payloads("s")) == {
        "a": [1, None, 1],
        "b": [2, None, 2],
        "c": [[3], None, [3, 4, 5]],
    }
    assert report.payloads("s").column("cut").to_pylist() == [True] * 3


def test_lengths_texts_and_pointers(tmp_path: Path) -> None:
    dynamic = {
        "name": "d",
        "type": 2,
        "entries": [
            entry("n", 12),
            entry("items", 13, BY_ENTRY, 0),
            entry("text", 76, TERMINATED),
            entry("last", 15),
        ],
    }
    pointers = {
        "name": "p",
        "type": 1,
        "size": 32,
        "entries": [
            entry("n", 17),
            entry("items", 43, POINTER | BY_ENTRY, 0),
            entry("text", 75),
            entry("none", 76),
        ],
    }
    lies = struct.pack("<b x 2h 3s", 9, 10, 20, b"ab\0")
    ends = struct.pack("<b x 2h 3s xxx i", 2, 10, 20, b"ab\0", 5)
    pointed = (
        struct.pack("<qQQQ", 2, 40, 56, 0) + bytes(8) + struct.pack("<2f", 0.5, 1.5) + bytes(8) + b"hello\0"
    )
    assert pointed[56:61] == b"hello"
    report = report_of(
        tmp_path,
        {FIRST: dynamic, FIRST + 1: pointers},
        [(FIRST, ends), (FIRST + 1, pointed), (FIRST, b"\x7f"), (FIRST, lies)],
    )
    assert columns(report.payloads("d")) == {
        "n": [2, 127, 9],
        "items": [[10, 20], None, [10, 20, 25185]],
        "text": ["ab", None, None],
        "last": [5, None, None],
    }
    assert columns(report.payloads("p")) == {
        "n": [2],
        "items": [[0.5, 1.5]],
        "text": ["hello"],
        "none": [None],
    }


def test_unions(tmp_path: Path) -> None:
    union = {"name": "u", "type": 3, "size": 8, "entries": [entry("i", 17), entry("f", 44)]}
    holder = {"name": "h", "type": 1, "entries": [entry("which", 12), entry("value", FIRST, 0, 0)]}
    payloads = [
        (FIRST + 1, struct.pack("<B7xq", 0, 5)),
        (FIRST + 1, struct.pack("<B7xd", 1, 2.5)),
        (FIRST + 1, struct.pack("<B7xd", 9, 2.5)),
        (FIRST, bytes(8)),
    ]
    report = report_of(tmp_path, {FIRST: union, FIRST + 1: holder}, payloads)
    assert columns(report.payloads("h")) == {
        "which": [0, 1, 9],
        "value": [{"i": 5, "f": None}, {"i": None, "f": 2.5}, None],
    }
    assert values(report) == [
        {"which": 0, "value": {"i": 5}},
        {"which": 1, "value": {"f": 2.5}},
        {"which": 9, "value": None},
        bytes(8),
    ]


@pytest.mark.parametrize(
    ("kind", "data", "name", "value"),
    [
        (17, struct.pack("<q", -3), "int64", -3),
        (9, struct.pack("<q", -3), "int64", -3),
        (18, struct.pack("<2Q", 1, 1 << 63), "uint64", [1, 1 << 63]),
        (20, struct.pack("<d", 0.5), "float64", 0.5),
        (42, struct.pack("<2e", 0.5, 2), "float16", [0.5, 2.0]),
        (33, (-5).to_bytes(16, "little", signed=True), "int128", -5),
        (32, b"\0\1", "byte", b"\0\1"),
        (76, "né\0x".encode(), "string", "né"),
        (77, "né".encode("utf-16-le"), "string16", "né"),
        (78, "né".encode("utf-32-le"), "string32", "né"),
        (1023, b"\xff", "raw", b"\xff"),
        (5000, b"\xff", "type 5000", b"\xff"),
        (FIRST + 7, b"\xff", f"schema {FIRST + 7}", b"\xff"),
    ],
)
def test_predefined_types(tmp_path: Path, kind: int, data: bytes, name: str, value: Any) -> None:
    report = report_of(tmp_path, {}, [(kind, data)])
    assert values(report) == [value]
    table = report.payloads(name)
    assert table.num_rows == 1
    if name in ("raw", "type 5000", f"schema {FIRST + 7}"):
        assert columns(table) == {"data": [value]}
    else:
        assert columns(table) == {"value": [str(value) if name == "int128" else value]}


def test_values_that_only_wrap_one(tmp_path: Path) -> None:
    single = {"name": "bool", "type": 1, "entries": [entry("value", FIRST + 9)]}
    array = {
        "name": "int16[:,:]",
        "type": 2,
        "entries": [entry("shape", 18, FIXED, 2), entry("values", 13, BY_ENTRY, 0, 16)],
    }
    report = report_of(
        tmp_path,
        {FIRST + 9: TRUTH, FIRST: single, FIRST + 1: array},
        [(FIRST, b"\1"), (FIRST + 1, struct.pack("<2Q6h", 2, 3, *range(6)))],
    )
    assert values(report) == [True, [[0, 1, 2], [3, 4, 5]]]
    assert report.payloads().column("text").to_pylist() == ["true", "[[0, 1, 2], [3, 4, 5]]"]
    assert columns(report.payloads("int16[:,:]")) == {"shape": [[2, 3]], "values": [[0, 1, 2, 3, 4, 5]]}


def test_layouts_without_a_name_are_called_by_what_they_hold(tmp_path: Path) -> None:
    """As PyPI nvtx registers them: nameless, each number in a structure of its own."""
    number = {"name": None, "type": 1, "size": 4, "entries": [entry("int32", 15)]}
    text = {"name": None, "type": 1, "size": 8, "entries": [entry("str64", 78, 0, 2)]}
    array = {"name": None, "type": 2, "entries": [entry("size", 18), entry("data", FIRST, BY_ENTRY, 0)]}
    pair = {
        "name": None,
        "type": 1,
        "size": 12,
        "entries": [entry("x", FIRST), entry("s", FIRST + 1, 0, 0, 4)],
    }
    report = report_of(
        tmp_path,
        {FIRST: number, FIRST + 1: text, FIRST + 2: array, FIRST + 3: pair},
        [
            (FIRST + 2, struct.pack("<Q2i", 2, 5, 6)),
            (FIRST + 3, struct.pack("<i", 7) + "ab".encode("utf-32-le")),
            (FIRST, struct.pack("<i", 8)),
        ],
    )
    assert values(report) == [[5, 6], {"x": 7, "s": "ab"}, 8]
    assert report.payloads().column("type").to_pylist() == [
        "{size: uint64, data: int32[]}",
        "{x: int32, s: {str64: string}}",
        "{int32: int32}",
    ]
    assert columns(report.payloads("{size: uint64, data: int32[]}")) == {"size": [2], "data": [[5, 6]]}


def test_json(tmp_path: Path) -> None:
    layout = {"name": "warplens.json", "type": 2, "entries": [entry("json", 76, TERMINATED)]}
    report = report_of(tmp_path, {FIRST: layout}, [(FIRST, b'{"a": [1, "x"]}\0'), (FIRST, b'{"a": [1,')])
    assert values(report) == [{"a": [1, "x"]}, '{"a": [1,']
    assert columns(report.payloads("warplens.json")) == {"json": ['{"a": [1, "x"]}', '{"a": [1,']}


def test_names_that_are_not_there(tmp_path: Path) -> None:
    layout = {"name": "never", "type": 1, "entries": [entry("a", 17)]}
    report = report_of(tmp_path, {FIRST: layout}, [(17, bytes(8))])
    with pytest.raises(MissingData, match=r"'other'.*it has 'int64', 'never'"):
        report.payloads("other")
    assert report.payloads("never").num_rows == 0


def test_layouts_of_one_name(tmp_path: Path) -> None:
    first = {"name": "s", "type": 1, "entries": [entry("a", 15)]}
    second = {"name": "s", "type": 1, "entries": [entry("a", 17), entry("b", 17)]}
    third = {"name": "t", "type": 1, "entries": [entry("a", 15)]}
    odd = {"name": "t", "type": 1, "entries": [entry("a", 76, 0, 2)]}
    payloads = [
        (FIRST, struct.pack("<i", 1)),
        (FIRST + 1, struct.pack("<qq", 2, 3)),
        (FIRST + 2, bytes(4)),
        (FIRST + 3, b"xy"),
    ]
    report = report_of(
        tmp_path, {FIRST: first, FIRST + 1: second, FIRST + 2: third, FIRST + 3: odd}, payloads
    )
    assert columns(report.payloads("s")) == {"a": [1, 2], "b": [None, 3]}
    assert report.payloads("t").column("text").to_pylist() == ["{a: 0}", '{a: "xy"}']


@pytest.mark.parametrize(
    "layout",
    [
        {"name": "s", "type": 1, "entries": [entry("self", FIRST)]},
        {"name": "s", "type": 1, "entries": [entry("a", 17, FIXED, 1 << 60)]},
        {"name": "s", "type": 1, "entries": [entry("a", 17, 0, 0, 1 << 62), entry("b", 17)]},
        {"name": "s", "type": 1, "entries": [entry("a", 17, BY_ENTRY, 0)]},
        {"name": "s", "type": 1, "entries": [entry("a", FIRST + 5)]},
        {"name": "s", "type": 4, "entries": [entry("which", 100), entry("a", 17)]},
        {"name": "s", "type": 1, "entries": "none"},
        {"name": "s", "type": 1, "entries": [3]},
        {"name": "s", "type": 1, "entries": [], "cut": True},
    ],
)
def test_layouts_that_cannot_be_read(tmp_path: Path, layout: dict[str, Any]) -> None:
    report = report_of(tmp_path, {FIRST: layout}, [(FIRST, b"\1\2\3")])
    assert values(report) == [b"\1\2\3"]
    assert columns(report.payloads("s")) == {"data": [b"\1\2\3"]}
    assert "undecoded-schema" in report.diagnostics.column("code").to_pylist()


@pytest.mark.slow
def test_lengths_that_lie(tmp_path: Path) -> None:
    many = {
        "name": "m",
        "type": 2,
        "entries": [entry("n", 18, FIXED, 2), entry("items", FIRST + 1, BY_ENTRY, 0)],
    }
    inner = {
        "name": "i",
        "type": 2,
        "entries": [entry("n", 18), entry("items", FIRST + 2, POINTER | BY_ENTRY, 0)],
    }
    empty = {"name": "e", "type": 1, "entries": []}
    data = struct.pack("<2Q", 1 << 62, 1 << 62) + struct.pack("<QQ", 1 << 63, 0) * 1000
    report = report_of(
        tmp_path,
        {FIRST: many, FIRST + 1: inner, FIRST + 2: empty},
        [(FIRST, data), (FIRST + 1, struct.pack("<QQ", 1 << 63, 1))],
    )
    assert len(values(report)) == 2


@pytest.mark.parametrize(
    "definition",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"kind": "schema", "entries": [{}]}',
        '{"kind": "schema", "type": 1, "entries": [{"type": 80, "name": "s"}], "strings": {"\u00b2": "x", "5": 2, "x": "y"}}',
        '{"kind": "enum", "size": 1, "entries": [{"name": [], "value": "1"}, 3]}',
        '{"kind": "schema", "type": 1, "size": 8, "entries": [{"type": 17, "offset": 500}]}',
        '{"kind": "schema", "type": 2, "entries": [{"type": 17}, {"type": 17}, {"type": 12, "flags": 50, "array": 0, "name": "field0"}]}',
    ],
)
def test_definitions_of_a_stranger(tmp_path: Path, definition: str) -> None:
    layout = {"name": "s", "type": 1, "entries": [entry("a", 17)]}
    report_of(
        tmp_path, {FIRST: layout}, [(FIRST, struct.pack("<q", 5)), (FIRST, b"1234567890123456")]
    ).close()
    file = next((tmp_path / "r.warplens" / "tables" / "nvtx_schemas").glob("*.parquet"))
    rows = pq.read_table(file)
    at = rows.schema.get_field_index("definition")
    pq.write_table(rows.set_column(at, rows.schema.field(at), pa.array([definition])), file)
    report = open_report(tmp_path / "r.warplens")
    assert len(values(report)) == 2
    assert report.payloads("s").num_rows == 2
    assert report.payloads().num_rows == 2


@pytest.mark.slow
def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    layouts = {
        FIRST + n: {
            "name": f"s{n}",
            "type": 1,
            "entries": [entry(f"f{k}", FIRST + n + 1 if n < 7 else 17) for k in range(50)],
        }
        for n in range(8)
    }
    report = report_of(tmp_path, layouts, [(FIRST, bytes(8))])
    assert values(report) == [bytes(8)]
    assert "undecoded-schema" in report.diagnostics.column("code").to_pylist()
