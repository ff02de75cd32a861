"""Payloads, counters, tasks and objects: from a spool written byte by byte to the tables of a report."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warplens.convert.finish import finish
from warplens.report import Report
from warplens.report import open as open_report
from warplens.storage.writer import RANGES_PER_PROCESS
from warplens.testing import spool_writer as sw

SCHEMA, ENUM, COUNTER = 1 << 24, (1 << 24) + 1, 7
DYNAMIC = 1 << 32
Make = Callable[..., Report]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """Finish a spool: strings by id, records of thread 0, payloads (as a function of where they lie)."""

    def make(
        texts: dict[int, str],
        records: Callable[[list[int]], list[bytes]],
        payloads: list[bytes] | None = None,
        **more: Any,
    ) -> Report:
        chunk, offsets = sw.blobs(0, payloads or [], sw.first_chunk())
        about = [sw.meta("thread", thread=0, tid=10, start=1), sw.meta("domain", 90, domain=1)]
        data = sw.spool(
            [
                chunk,
                sw.strings({90: "lib", **texts}),
                sw.records(sw.NO_THREAD, about),
                sw.records(0, records(offsets)),
            ],
            **more,
        )
        sw.write(tmp_path / "spool", data)
        finish(tmp_path / "spool", tmp_path / "r.warplens")
        return open_report(tmp_path / "r.warplens")

    return make


def notes(report: Report) -> dict[str, int]:
    return {row["code"]: row["count"] for row in report.diagnostics.to_pylist()}


def entry(name: str, kind: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "flags": 0, "array": 0, "offset": 0, **more}


def test_payloads_are_one_row_per_blob(made: Make) -> None:
    layout = sw.definition(
        "schema", name="batch", type=1, flags=0, size=12, align=0, entries=[entry("n", 17), entry("loss", 43)]
    )
    blobs = [
        sw.blob(struct.pack("<qf", 3, 0.25), SCHEMA),
        sw.blob(b"abc", 76, flags=1),
        sw.blob(b'{"a": 1}\0', DYNAMIC, flags=2),
        sw.blob(struct.pack("<3d", 1, 2, 3), 20),
        sw.blob(b"x", 999),
    ]
    first = sw.first_chunk() + 64
    blobs[0] = sw.blob(struct.pack("<qf", 3, 0.25), SCHEMA, following=first + len(blobs[0]))
    text = sw.definition("schema", name="warplens.json", type=2, entries=[entry("json", 76, flags=0x20)])

    def records(at: list[int]) -> list[bytes]:
        return [
            sw.define(1, SCHEMA, domain=1, start=10),
            sw.define(2, DYNAMIC, start=10),
            sw.event("range", 20, 30, domain=1, flags=7, payload=at[0]),
            sw.event("mark", 25, domain=1, flags=7, payload=at[2]),
            sw.event("range", 40, 50, flags=7, payload=at[3]),
            sw.event("range", 60, 70, flags=7, payload=at[4]),
            sw.event("range", 80, 90, flags=7, payload=0),
        ]

    report = made({1: layout, 2: text}, records, blobs, dropped={28: 1, 29: 2})
    plain = {"process": 0, "at_end": False, "cut": False, "json": None, "schema": None}
    assert report.table("payloads").to_pylist() == [
        {
            **plain,
            "event_type": "range",
            "event": 0,
            "schema": 0,
            "type": "batch",
            "data": struct.pack("<qf", 3, 0.25),
        },
        {**plain, "event_type": "range", "event": 0, "type": "string", "at_end": True, "data": b"abc"},
        {**plain, "event_type": "range", "event": 1, "type": "float64", "data": struct.pack("<3d", 1, 2, 3)},
        {**plain, "event_type": "range", "event": 2, "type": "type 999", "data": b"x"},
        {
            **plain,
            "event_type": "mark",
            "event": 0,
            "schema": 1,
            "type": "warplens.json",
            "cut": True,
            "data": None,
            "json": '{"a": 1}',
        },
    ]
    schemas = report.table("nvtx_schemas").to_pylist()
    assert [
        (row["schema"], row["domain"], row["id"], row["name"], row["kind"], row["size"]) for row in schemas
    ] == [
        (0, "lib", SCHEMA, "batch", "static", 12),
        (1, None, DYNAMIC, "warplens.json", "dynamic", None),
    ]
    assert schemas[0]["definition"] == layout
    assert notes(report) == {
        "lost-payloads": 1,
        "cut-payloads": 2,
        "no-launch-record": None,
        "no-clock-log": None,
    }
    assert report.sql("SELECT octet_length(data) AS n FROM payloads WHERE type = 'batch'").to_pylist() == [
        {"n": 12}
    ]


def test_registered_strings_in_payloads_keep_their_text(made: Make) -> None:
    layout = sw.definition("schema", name="s", type=1, entries=[entry("n", 15), entry("what", 80)])
    blobs = [
        sw.blob(struct.pack("<iiQ", 1, 0, 5), SCHEMA),
        sw.blob(struct.pack("<iiQ", 1, 0, 77), SCHEMA),
        sw.blob(b"short", SCHEMA),
    ]
    report = made(
        {1: layout, 5: "registered"},
        lambda at: [
            sw.define(1, SCHEMA),
            *(sw.event("mark", 20 + n, flags=7, payload=offset) for n, offset in enumerate(at)),
        ],
        blobs,
    )
    assert (
        report.table("nvtx_schemas", ["definition"])
        .to_pylist()[0]["definition"]
        .endswith('"strings": {"5": "registered"}}')
    )


def test_counters(made: Make) -> None:
    semantics = [
        {
            "id": 5,
            "flags": 1 << 2 | 2 << 4 | 3 << 8,
            "unit": "bytes",
            "unit_scale_numerator": 1024,
            "unit_scale_denominator": 1,
            "min": -1,
            "max": 9,
        }
    ]
    texts = {
        1: sw.definition(
            "counter", name="mem", description="used", schema=17, scope=DYNAMIC, semantics=semantics
        ),
        2: sw.definition("scope", path="gpu/0", parent=2),
        3: sw.definition(
            "schema", type=1, size=16, entries=[entry("a", 15), entry("name", 76, array=4), entry("b", 20)]
        ),
        4: sw.definition("counter", name="both", schema=SCHEMA, scope=0, semantics=[]),
    }
    blobs = [
        sw.blob(struct.pack("<i4sd", -5, b"name", 0.5), SCHEMA),
        sw.blob(struct.pack("<i4sd", 6, b"name", 1.5), SCHEMA),
        sw.blob(b"no", SCHEMA),
    ]

    def records(at: list[int]) -> list[bytes]:
        return [
            sw.define(2, DYNAMIC, domain=1, start=1),
            sw.define(1, COUNTER, domain=1, start=2),
            sw.define(3, SCHEMA, start=3),
            sw.define(4, COUNTER + 1, start=4),
            sw.event("sample", 10, domain=1, category=COUNTER, flags=2, payload=3),
            sw.event("sample", 11, category=COUNTER + 1, flags=7, payload=at[0]),
            sw.event("sample", 12, domain=1, category=COUNTER, color=1),
            sw.event("sample", 13, category=COUNTER + 1, flags=7, payload=at[1]),
            sw.event(
                "sample", 14, category=99, flags=3, payload=struct.unpack("<Q", struct.pack("<d", 2.5))[0]
            ),
            sw.event("sample", 15, category=COUNTER + 1, color=2),
            sw.event("sample", 16, category=COUNTER + 1, flags=7, payload=at[2]),
        ]

    report = made(texts, records, blobs)
    counters = report.table("nvtx_counters").to_pylist()
    assert [(row["counter"], row["domain"], row["id"], row["name"], row["type"]) for row in counters] == [
        (0, "lib", COUNTER, "mem", "int64"),
        (1, None, COUNTER + 1, "both.a", "int32"),
        (2, None, COUNTER + 1, "both.b", "float64"),
        (3, None, 99, None, "float64"),
    ]
    about = ("description", "unit", "scale", "minimum", "maximum", "value_type", "interpolation", "scope")
    assert tuple(counters[0][name] for name in about) == (
        "used",
        "bytes",
        1024.0,
        -1.0,
        None,
        "delta",
        "until_next",
        "/machine/gpu/0",
    )
    assert tuple(counters[1][name] for name in about) == (None,) * 8
    samples = report.table("nvtx_counter_samples").to_pylist()
    assert [row["id"] for row in samples] == list(range(10))
    assert [
        (row["start"], row["counter"], row["value_int"], row["value_float"], row["no_value"])
        for row in samples
    ] == [
        (10, 0, 3, None, None),
        (11, 1, -5, None, None),
        (11, 2, None, 0.5, None),
        (12, 0, None, None, "unchanged"),
        (13, 1, 6, None, None),
        (13, 2, None, 1.5, None),
        (14, 3, None, 2.5, None),
        (15, 1, None, None, "unavailable"),
        (15, 2, None, None, "unavailable"),
        (16, 1, None, None, None),
    ]
    assert [
        (row["event_type"], row["event"], row["data"]) for row in report.table("payloads").to_pylist()
    ] == [("sample", 9, b"no")]
    assert notes(report).items() >= {"unknown-counters": 1, "undecoded-samples": 1}.items()


def test_tasks(made: Make) -> None:
    texts = {
        1: "outer",
        2: "in task",
        3: "sync",
        4: "child",
        5: sw.definition("task", name="Task-1", library="asyncio", parent=501),
        6: sw.definition("task", name="Task-2", library="asyncio", parent=0),
    }
    records = [
        sw.define(5, 1, start=20),
        sw.define(6, 2, start=20),
        sw.meta("task_switch", number=1, start=21),
        sw.event("range", 30, 35, 3),
        sw.event("sample", 36, flags=2, payload=1, category=9),
        sw.event("mark", 37, 3),
        sw.meta("task_switch", number=2, start=38),
        sw.event("range", 40, 41, 3),
        sw.meta("task_switch", number=3, start=42),
        sw.event("mark", 43, 3),
        sw.meta("task_switch", number=0, start=49),
        sw.event("start_end", 32, 60, 4),
        sw.origin(0, 503, parent=502, task=1),
        sw.event("start_end", 25, 80, 2),
        sw.origin(0, 502, task=1),
        sw.event("start_end", 15, 22, 1),
        sw.origin(0, 501),
        sw.event("range", 10, 90, 1),
        sw.event("start_end", 70, 75, 4),
        sw.origin(0, 504, parent=999),
    ]
    report = made(texts, lambda _: records)
    tasks = report.table("tasks").to_pylist()
    assert [(row["task"], row["name"], row["library"], row["parent"], row["start"]) for row in tasks] == [
        (1, "Task-1", "asyncio", 1, 20),
        (2, "Task-2", "asyncio", None, 20),
        (3, None, "unknown", None, 42),
    ]
    ranges = report.table("nvtx_ranges").to_pylist()
    assert [(row["start"], row["message"], row["task"], row["parent"], row["depth"]) for row in ranges] == [
        (10, "outer", None, None, 0),
        (15, "outer", None, None, 0),
        (
            25,
            "in task",
            1,
            1,
            0,
        ),  # made under the range that task 1 was made in, which began after the one around it
        (30, "sync", 1, 2, 1),
        (32, "child", 1, 2, 1),
        (40, "sync", 2, 0, 1),
        (70, "child", None, None, 0),
    ]
    assert report.table("nvtx_marks", ["start", "task"]).to_pylist() == [
        {"start": 37, "task": 1},
        {"start": 43, "task": 3},
    ]
    assert report.table("nvtx_counter_samples", ["task"]).to_pylist() == [{"task": 1}]
    assert notes(report)["lost-parents"] == 1


def test_objects_and_operations(made: Make) -> None:
    texts = {
        1: sw.definition("sync", **{"type": 3, "class": "lock", "identifier": 4096, "name": "m"}),
        2: sw.definition("cuda_stream", api="cudart", identifier=77, name="copies"),
        3: sw.definition("sync", **{"type": 3, "class": "lock", "identifier": 4096, "name": "again"}),
    }
    records = [
        sw.define(1, 5, domain=1, start=10),
        sw.define(2, 0, start=11),
        sw.operation(3, 20, domain=1, object_id=5),
        sw.operation(5, 21, domain=1, object_id=5, value=3),
        sw.operation(2, 30, domain=1, object_id=5),
        sw.define(3, 5, domain=1, start=40),
        sw.operation(6, 50, domain=1, object_id=5),
        sw.operation(9, 60, object_id=1 << 63, value=64),
        sw.operation(200, 70),
    ]
    report = made(texts, lambda _: records)
    objects = report.table("nvtx_objects").to_pylist()
    assert [
        (
            row["object"],
            row["domain"],
            row["id"],
            row["kind"],
            row["identifier"],
            row["name"],
            row["start"],
            row["end"],
        )
        for row in objects
    ] == [
        (0, "lib", 5, "sync", 4096, "m", 10, 30),
        (1, None, None, "cuda_stream", 77, "copies", 11, None),
        (2, "lib", 5, "sync", 4096, "again", 40, None),
    ]
    operations = report.table("nvtx_operations").to_pylist()
    assert [
        (row["start"], row["domain"], row["action"], row["object"], row["target"], row["value"])
        for row in operations
    ] == [
        (20, "lib", "sync_acquire_start", 0, 5, None),
        (21, "lib", "sync_acquire_success", 0, 5, 3),
        (30, "lib", "sync_destroy", 0, 5, None),
        (50, "lib", "sync_releasing", 2, 5, None),
        (60, None, "region_register", None, 1 << 63, 64),
        (70, None, "action 200", None, 0, None),
    ]


def test_keys_of_a_later_process(tmp_path: Path) -> None:
    texts = sw.strings({1: sw.definition("counter", name="c", schema=17)})
    for pid in (10, 11):
        sw.write(
            tmp_path / "spool",
            sw.spool(
                [texts, sw.records(0, [sw.define(1, 3), sw.event("sample", 10, flags=2, category=3)])],
                {"pid": pid},
            ),
            pid=pid,
        )
    finish(tmp_path / "spool", tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    assert report.table("nvtx_counters", ["counter"]).column(0).to_pylist() == [0, RANGES_PER_PROCESS]
    assert report.table("nvtx_counter_samples", ["counter", "id"]).to_pylist() == [
        {"counter": 0, "id": 0},
        {"counter": 1 << 32, "id": 1 << 32},
    ]


def test_an_empty_name_is_a_name(made: Make) -> None:
    def records(_: list[int]) -> list[bytes]:
        named = [sw.meta("domain", 1, domain=2), sw.meta("category", 1, domain=2, category=3)]
        return [
            *named,
            sw.event("range", 10, 20, 1, domain=2, category=3),
            sw.event("range", 30, 40, 1, domain=5, category=4),
        ]

    report = made({1: ""}, records)
    found = report.sql("SELECT domain, category, message FROM nvtx_ranges ORDER BY start").to_pylist()
    assert [tuple(row.values()) for row in found] == [("", "", ""), ("domain 5", "4", "")]
