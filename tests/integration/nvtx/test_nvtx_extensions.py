"""The extensions of NVTX as the agent records them: payloads, counters, clocks, late events, objects, memory; raw, before any report."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import in_site_packages
from tests.support.programs.launching import warplens
from tests.support.reports.spool_records import Blob, RawSpool, Record, read_spools
from warplens.report import open as open_report

Target = Callable[..., Path]
AGENT = Path(__file__).resolve().parents[3] / "src" / "warplens" / "_lib" / "libwarplens_agent.so"
DYNAMIC = 1 << 32
STATIC = 1 << 24
ABSOLUTE_PAGE = 1 << 12
MISPLACED, UNDECODED, LOST, CUT = 26, 27, 28, 29

pytestmark = pytest.mark.require("native")


def run(folder: Path, *command: str | Path) -> tuple[dict[str, int], list[RawSpool]]:
    """Run a program under the agent, without a launcher; return the numbers it printed as NAME=NUMBER, and its spools."""
    variables = os.environ | {"NVTX_INJECTION64_PATH": str(AGENT), "WARPLENS_SPOOL": str(folder)}
    done = subprocess.run(
        list(map(str, command)), env=variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return {
        name: int(number) for name, number in re.findall(r"^(\w+)=(\d+)$", done.stdout, re.M)
    }, read_spools(folder)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, target: Target) -> tuple[dict[str, int], list[RawSpool]]:
    """One run of the program that makes every call."""
    return run(tmp_path_factory.mktemp("extensions"), target("nvtx_extensions"))


@pytest.fixture(scope="module")
def spool(ran: tuple[dict[str, int], list[RawSpool]]) -> RawSpool:
    """Its parent process."""
    return ran[1][0]


def named(spool: RawSpool, kind: str, name: str | None) -> list[Record]:
    """The records of one type and name in the program's domain."""
    return [record for record in spool.of(kind, "ext") if record.name == name]


def one(spool: RawSpool, kind: str, name: str) -> Record:
    """The only record of this type and name."""
    (record,) = named(spool, kind, name)
    return record


def defined(spool: RawSpool, kind: str, name: str) -> Record:
    """The only definition of this kind and name."""
    (record,) = [record for record in spool.definitions(kind) if record.json["name"] == name]
    return record


def step(rank: int, loss: float) -> bytes:
    """The program's structure `Step`, without the bytes between its members."""
    return struct.pack("<id", rank, loss)


def values(blob: Blob) -> bytes:
    """The same of a payload."""
    return blob.data[:4] + blob.data[8:16]


def test_schemas_are_told_once_with_their_entries(spool: RawSpool) -> None:
    record = defined(spool, "schema", "step")
    assert record["id"] >= DYNAMIC
    assert record.json["size"] == 16
    assert record.json["type"] == 1
    assert record.json["entries"] == [
        {"name": "rank", "description": "who", "type": 15, "flags": 0, "array": 0, "offset": 0},
        {"name": "loss", "type": 20, "flags": 0, "array": 0, "offset": 8},
    ]
    fixed = defined(spool, "schema", "fixed")
    assert fixed["id"] == STATIC + 5
    assert fixed.json["size"] == 16  # computed: the program did not say
    colors = defined(spool, "enum", "colors").json
    assert colors["size"] == 4
    assert colors["entries"] == [
        {"name": "red", "value": 1, "flag": False},
        {"name": "blue", "value": 2, "flag": True},
    ]


@pytest.mark.parametrize("kind", ["mark", "range", "start_end"])
def test_an_event_has_all_its_payloads(spool: RawSpool, kind: str) -> None:
    record = one(spool, kind, "attributes")
    assert [(blob.schema, blob.at_end, blob.cut) for blob in record.blobs] == [
        (defined(spool, "schema", "step")["id"], False, False),
        (STATIC + 5, False, False),
        (1023, False, False),
    ]
    assert [values(record.blobs[0]), values(record.blobs[1]), record.blobs[2].data] == [
        step(3, 0.5),
        step(4, 0.25),
        b"raw",
    ]


def test_payloads_of_the_end_come_before_those_of_the_begin(spool: RawSpool) -> None:
    extended = one(spool, "range", "extended")
    assert [(blob.schema, blob.at_end) for blob in extended.blobs] == [
        (STATIC + 5, True),
        (1023, True),
        (defined(spool, "schema", "step")["id"], False),
    ]
    with_blob, plain = named(spool, "range", "number")
    assert [(blob.schema, blob.data, blob.at_end) for blob in with_blob.blobs[1:]] == [
        (15, struct.pack("<i", 77), False)
    ]
    assert values(with_blob.blobs[0]) == step(3, 0.5)
    assert with_blob.blobs[0].at_end
    assert (plain.number, plain.blobs) == (77, [])


def test_calls_that_carry_nothing_but_payloads(spool: RawSpool) -> None:
    (pushed,) = named(spool, "range", None)
    assert [blob.at_end for blob in pushed.blobs] == [True, False, False]
    started = named(spool, "start_end", None)[0]
    assert [(values(blob), blob.at_end) for blob in started.blobs] == [
        (step(4, 0.25), True),
        (step(3, 0.5), False),
    ]
    assert values(named(spool, "mark", None)[0].blobs[0]) == step(3, 0.5)


def test_odd_payloads(spool: RawSpool) -> None:
    assert one(spool, "mark", "nothing in it").blobs == []
    assert one(spool, "mark", "nothing in it")["flags"] & 7 == 0
    assert [(blob.schema, blob.data) for blob in one(spool, "mark", "never registered").blobs] == [
        (1 << 40, b"never"),
        (0, b"ze"),
        (75, b"text\0"),
        (defined(spool, "schema", "step")["id"], b"abc"),
    ]
    assert one(spool, "mark", "longer structure").blobs[0].data == b"never"
    for name in ("null array", "count is garbage", "type is garbage"):
        assert (one(spool, "mark", name)["flags"] & 7, one(spool, "mark", name)["payload"]) == (7, 0)
    assert spool.dropped[LOST] == 3 + 2  # and a pop and an end of ranges that are not open
    assert [
        record["category"]
        for record in named(spool, "mark", None)
        if record["category"] == 9 and not record.blobs
    ] == [9]


def test_large_payloads_are_cut_at_a_megabyte(spool: RawSpool) -> None:
    large, whole = one(spool, "mark", "large").blobs
    assert (len(large.data), large.cut) == (1 << 20, True)
    assert (len(whole.data), whole.cut) == (1 << 20, False)


def entries(spool: RawSpool, schema: str) -> dict[str, int]:
    """Where the entries of a schema lie."""
    return {entry["name"]: entry["offset"] for entry in defined(spool, "schema", schema).json["entries"]}


def test_memory_behind_payload_pointers_is_copied(spool: RawSpool) -> None:
    at = entries(spool, "rich")
    (blob,) = one(spool, "mark", "said by the payload").blobs
    assert blob.text(at["text"]) == "said by the payload"
    numbers = blob.word(at["numbers"])
    assert struct.unpack_from("<3i", blob.data, numbers) == (10, 20, 30)
    steps = blob.word(at["steps"])
    assert [struct.unpack_from("<i4xd", blob.data, steps + 16 * i) for i in range(2)] == [(1, 1.5), (2, 2.5)]
    wide = blob.word(at["utf16"])
    assert blob.data[wide : wide + 10] == "wide\0".encode("utf-16-le")
    assert blob.text(at["terminated"]) == "edge"
    assert blob.word(at["wild"]) == 0
    assert blob.cut  # because of the wild pointer


def test_a_text_that_ends_in_unreadable_memory_is_cut(spool: RawSpool) -> None:
    at = entries(spool, "rich")
    (blob,) = one(spool, "mark", "torn").blobs
    assert blob.text(at["terminated"]) == "edgeX"
    assert blob.cut


def test_payloads_say_message_category_and_color(spool: RawSpool) -> None:
    for kind, name in (
        ("mark", "said by the payload"),
        ("range", "said by the payload"),
        ("start_end", "by the end"),
    ):
        record = one(spool, kind, name)
        assert (record["category"], record["color"], record["flags"] & 8) == (42, 0xFF00FF00, 8)
    assert not named(spool, "range", "overridden")
    assert len(named(spool, "mark", "registered by payload")) == 1
    assert one(spool, "mark", "behind").blobs[0].data.startswith(b"\2\0")


def test_nested_payloads(spool: RawSpool) -> None:
    at = entries(spool, "rich")
    size = defined(spool, "schema", "rich").json["size"]
    (blob,) = one(spool, "mark", "registered by payload").blobs
    assert blob.text(8 + at["text"]) == "first"
    assert blob.text(8 + size + at["text"]) == "second"
    assert struct.unpack_from("<i", blob.data, blob.word(8 + size + at["numbers"])) == (10,)


def test_a_schema_that_holds_itself_ends(spool: RawSpool) -> None:
    (blob,) = [
        blob for record in named(spool, "mark", None) for blob in record.blobs if blob.schema == STATIC + 9
    ]
    assert blob.cut
    assert len(blob.data) < ABSOLUTE_PAGE


def samples(spool: RawSpool, name: str) -> list[Record]:
    """The samples of a counter."""
    return [
        record
        for record in spool.of("sample", "ext")
        if record["category"] == defined(spool, "counter", name)["id"]
    ]


def test_counters_are_told_with_their_semantics(spool: RawSpool) -> None:
    (scope,) = spool.definitions("scope")
    assert (scope.json["path"], scope.json["parent"]) == ("GPU[0]/memory", 1)
    integer = defined(spool, "counter", "integer").json
    assert (integer["schema"], integer["scope"], integer["description"]) == (
        17,
        scope["id"],
        "what it counts",
    )
    assert integer["semantics"] == [
        {"id": 5, "version": 2, "flags": 0x11C, "unit": "MB", "unit_scale_numerator": 1, "unit_scale_denominator": 1024,
         "limit_type": 3, "min": 0.5, "max": 99.5},
        {"id": 2, "version": 1, "time_domain": 1},
    ]  # fmt: skip
    shorter = defined(spool, "counter", "shorter").json
    assert (shorter["schema"], shorter["description"], shorter["scope"], shorter["semantics"]) == (
        18,
        None,
        0,
        [],
    )


def test_samples(spool: RawSpool) -> None:
    first, reason, *_ = samples(spool, "integer")
    assert first.number == -5
    assert (reason["flags"] & 7, reason["color"]) == (0, 2)
    assert [record.number for record in samples(spool, "float")] == [2.5]
    assert defined(spool, "counter", "float")["id"] == STATIC + 77
    assert [record.number for record in samples(spool, "small")] == [-3]
    assert [values(record.blobs[0]) for record in samples(spool, "group")] == [
        step(7, 7.5),
        step(1, 1),
        step(2, 2),
    ]
    (odd,) = [record for record in spool.of("sample", "ext") if record["category"] == 12345]
    assert [(blob.schema, blob.data) for blob in odd.blobs] == [(1023, b"odd")]


def test_batches_have_the_programs_times(ran: tuple[dict[str, int], list[RawSpool]], spool: RawSpool) -> None:
    t = ran[0]["t"]
    batches = samples(spool, "integer")[2:]
    assert [record.number for record in batches] == [1, 2, 3] * 3
    assert [record["start"] - t for record in batches] == [
        -3000,
        -2000,
        -1000,
        -5000,
        -4900,
        -4800,
        -5200,
        -5100,
        -5000,
    ]
    assert [record["start"] - t for record in samples(spool, "group")[1:]] == [-3000, -2000]


def test_other_clocks_are_converted(ran: tuple[dict[str, int], list[RawSpool]], spool: RawSpool) -> None:
    numbers = ran[0]
    near = 50_000_000  # ns between reading two clocks, on a busy machine
    for clock in ("clock 0", "clock 1", "clock 2"):
        (record,) = samples(spool, clock)
        assert abs(record["start"] - numbers["ours"]) < near, clock
    assert (
        samples(spool, "clock 3")[0]["start"] - numbers["t"] == -100_000
    )  # 900 on a clock that passes 1000 in 1 ms
    assert (
        samples(spool, "clock 4")[0]["start"] - numbers["t"] == -100_000
    )  # 400 on one that is 500 behind that
    unknown, known = samples(spool, "no clock")
    assert unknown["start"] > numbers["ours"]  # when it was submitted
    assert spool.dropped[MISPLACED] == 1
    assert known["start"] - numbers["t"] == -2000


def test_late_events(ran: tuple[dict[str, int], list[RawSpool]], spool: RawSpool) -> None:
    t = ran[0]["deferred"]
    ranges = named(spool, "start_end", "deferred 0") + named(spool, "start_end", "deferred 1")
    assert [(record["start"] - t, record["end"] - t, record["category"]) for record in ranges] == [
        (-9000, -8000, 5),
        (-9000, -8000, 5),
        (-7000, -6000, 6),
    ]
    assert [one(spool, "mark", name)["start"] - t for name in ("first", "second")] == [-500, -400]
    assert one(spool, "mark", "second").blobs[0].text(8) == "second"
    halves = named(spool, "start_end", None)[1:]
    assert [(record["start"] - t, record["end"] - t) for record in halves] == [
        (-300, -200),
        (-290, -270),
        (-280, -260),
    ]
    assert [[blob.at_end for blob in record.blobs] for record in halves] == [[True, False]] * 3
    assert [
        (one(spool, "mark", name)["start"] - t, len(one(spool, "mark", name).blobs[0].data))
        for name in ("two", "non")
    ] == [
        (-50, 32),
        (-40, 16),
    ]
    assert (
        spool.dropped[UNDECODED] == 3
    )  # an end without a begin, an event that says nothing, one of an unknown schema


def operations(spool: RawSpool, number: int) -> list[str]:
    """What was done to an object, in order."""
    names = {value: name for name, value in spool.facts["actions"].items()}
    return [names[record["action"]] for record in spool.of("operation") if record["object"] == number]


def test_resources_and_locks(spool: RawSpool) -> None:
    resources = spool.definitions("resource")
    assert [
        (record.json["class"], record.json["identifier"], record.json["name"]) for record in resources
    ] == [("sync_pthread", 0x1234, name) for name in ("a mutex", 'a "wide" mutex', "registered name")]
    assert [spool.domains.get(record["domain"]) for record in resources] == ["ext", None, "ext"]
    assert operations(spool, resources[0]["id"]) == ["resource_destroy"]
    lock = defined(spool, "sync", "spin lock")
    steps = ["acquire_start", "acquire_failed", "acquire_start", "acquire_success", "releasing", "destroy"]
    assert operations(spool, lock["id"]) == [f"sync_{name}" for name in steps]


def test_memory(ran: tuple[dict[str, int], list[RawSpool]], spool: RawSpool) -> None:
    pool = ran[0]["pool"]
    heap = defined(spool, "heap", "pool")
    assert (heap["id"], heap.json["size"], heap.json["usage"]) == (pool, 1000, 1)
    whole = [
        "region_register",
        "region_resize",
        "permissions_assign",
        "region_unregister",
        "heap_reset",
        "heap_unregister",
    ]
    assert operations(spool, pool) == whole
    assert operations(spool, pool + 100) == ["region_register"]
    assert [record["value"] for record in spool.of("operation") if record["object"] in (pool, pool + 100)][
        :3
    ] == [100, 200, 50]
    assert defined(spool, "region", "weights")["id"] == pool + 100
    (permissions,) = spool.definitions("permissions")
    assert operations(spool, permissions["id"]) == [
        "permissions_bind",
        "permissions_reset",
        "permissions_destroy",
    ]


def test_two_threads_at_once(spool: RawSpool) -> None:
    for name in ("storm 1", "storm 2"):
        ranges = named(spool, "range", name)
        assert [values(record.blobs[0]) for record in ranges] == [step(i, i * 0.5) for i in range(2000)]
        assert len({record.thread for record in ranges}) == 1


def test_a_fork_child_knows_the_definitions_but_not_the_parents_payloads(
    ran: tuple[dict[str, int], list[RawSpool]],
) -> None:
    parent, child = ran[1]
    known = [
        record
        for record in parent.of("define")
        if record.json["kind"] in ("schema", "enum", "counter", "scope")
    ]
    assert {(record["id"], record.name) for record in known} <= {
        (record["id"], record.name) for record in child.of("define")
    }
    assert not child.definitions("heap")  # unregistered before
    (popped,) = named(child, "range", "open at the fork")
    (ended,) = named(child, "start_end", "open at the fork")
    assert (popped["flags"] & 7, popped.blobs) == (0, [])
    assert [(values(blob), blob.at_end) for blob in ended.blobs] == [(step(2, 1), True)]
    assert values(one(child, "mark", "of the child").blobs[0]) == step(2, 1)
    assert [values(blob) for blob in one(parent, "range", "open at the fork").blobs] == [step(1, 1)]


def test_a_client_of_other_versions(tmp_path: Path, target: Target) -> None:
    program = target("nvtx_client")
    variables = os.environ | {"WARPLENS_SPOOL": str(tmp_path)}
    done = subprocess.run(
        [program, AGENT], env=variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")

    def numbers(first: int, last: int) -> str:
        return " ".join(map(str, range(first, last + 1)))

    assert done.stdout.splitlines() == [
        "initialized 1, version 3",
        *(f"callbacks {module}: {numbers(1, last)}" for module, last in enumerate((15, 8, 14, 6, 15, 6), 1)),
        "old client 1, pop beyond the end 0",
        "null 0",
        "module 3 compat 0x100: 0, filled",
        "module 2 compat 0x104: 0, filled",
        "null 0",
        f"module 2 compat 0x103: 1, filled {numbers(0, 7)}",
        f"module 4 compat 0x999: 1, filled {numbers(0, 5)}",
        f"module 1 compat 0x102: 1, filled {numbers(0, 16)}",
        "handles 1 1 1",
        f"module 2 compat 0x204: 1, filled {numbers(0, 17)}",
        "null registrations 1",
        f"module 4 compat 0x102: 1, filled {numbers(0, 5)}",
        "null counter 1",
    ]
    (spool,) = read_spools(tmp_path)
    streams = [
        (record.json["api"], record.json["identifier"], record.json["name"])
        for record in spool.definitions("cuda_stream")
    ]
    assert streams == [
        ("cuda", 0x20, "stream"),
        ("cuda", 0x21, "stream w"),
        ("cudart", 0x22, "rt stream"),
        ("cudart", 0x23, "rt stream w"),
    ]
    assert [record.json["name"] for record in spool.definitions("cuda_device")] == [
        "gpu zero",
        "gpu wïde",
        "renamed",
        "none",
    ]
    assert [record.json["name"] for record in spool.definitions("cuda_context")] == ["context", "context w"]
    assert [record.json["name"] for record in spool.definitions("cuda_event")] == [
        "event",
        None,
        "rt event",
        "rt event w",
    ]
    assert sum(record.json["kind"].startswith("opencl_") for record in spool.of("define")) == 14
    assert operations(spool, 0x7000) == ["memory_initialized"]
    assert len(spool.definitions("permissions")) == 2


PYTHON = """
import nvtx
import numpy as np

domain = nvtx.get_domain("python")
for payload in (np.arange(3.0), [1, 2, 3], b"bytes", np.array((3, 0.5), dtype=[("rank", "i4"), ("loss", "f8")])):
    domain.mark(message=type(payload).__name__, payload=payload)
with nvtx.annotate("range", domain="python", payload=np.arange(2)):
    pass
integer = domain.get_counter("integer", np.int64)
integer.sample(4)
integer.sample_no_value(nvtx.CounterNoValueReason.UNAVAILABLE)
now = domain.get_timestamp()
integer.batch_submit(np.array([1, 2], np.int64), np.array([now - 20, now - 10], np.int64))
domain.get_counter("float", np.float64).sample(2.5)
group = domain.get_counter("group", np.dtype([("a", "i4"), ("b", "f8")]))
group.sample(np.array((7, 7.5), dtype=[("a", "i4"), ("b", "f8")]))
print(f"now={now}")
"""


@pytest.mark.require("nvtx")
def test_the_other_python_binding(tmp_path: Path) -> None:
    in_site_packages("nvtx/__init__.py")
    printed, (spool,) = run(tmp_path, sys.executable, "-c", PYTHON)
    marks = {record.name: record.blobs for record in spool.of("mark", "python")}
    assert marks["bytes"][0].data == b"bytes"
    assert [
        struct.unpack("<q3d", blob.data) for record in spool.of("mark", "python")[:1] for blob in record.blobs
    ] == [(3, 0, 1, 2)]
    assert [struct.unpack("<4q", blob.data) for blob in marks["list"]] == [(3, 1, 2, 3)]
    assert len(one_of(spool, "range", "range").blobs) == 1
    ids = {record.json["name"]: record["id"] for record in spool.definitions("counter")}
    found: dict[str, list[Any]] = {
        name: [r for r in spool.of("sample") if r["category"] == number] for name, number in ids.items()
    }
    assert [record.number for record in found["integer"]] == [4, None, 1, 2]
    assert [record["start"] - printed["now"] for record in found["integer"][2:]] == [-20, -10]
    assert [record.number for record in found["float"]] == [2.5]
    assert len(found["group"][0].blobs) == 1
    assert not any(spool.dropped)


def test_the_report_has_it_all(tmp_path: Path, target: Target) -> None:
    report = tmp_path / "run.warplens"
    done = warplens("profile", "-q", "-o", report, target("nvtx_extensions"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with open_report(report) as opened:

        def rows(sql: str) -> list[tuple[Any, ...]]:
            return [tuple(row.values()) for row in opened.sql(sql).to_pylist()]

        assert rows("SELECT count(*) FROM nvtx_ranges WHERE message LIKE 'storm _'") == [(4000,)]
        assert rows(
            'SELECT message, "end" - start FROM nvtx_ranges WHERE starts_with(message, $$deferred$$) ORDER BY start'
        ) == [
            ("deferred 0", 1000),
            ("deferred 0", 1000),
            ("deferred 1", 1000),
        ]
        assert rows("""
            SELECT p.type, p.at_end, octet_length(p.data) FROM payloads p JOIN nvtx_ranges r ON p.event = r.id
            WHERE p.event_type = 'range' AND r.message = 'extended' ORDER BY p.at_end, p.type""") == [
            ("step", False, 16),
            ("fixed", True, 16),
            ("raw", True, 3),
        ]
        assert rows(
            "SELECT DISTINCT name, unit, minimum, maximum FROM nvtx_counters WHERE name = 'integer'"
        ) == [("integer", "MB", 0.5, 99.5)]
        assert rows("""
            SELECT name, list(value_int ORDER BY value_int), list(value_float), list(no_value) FILTER (no_value IS NOT NULL)
            FROM nvtx_counter_samples JOIN nvtx_counters USING (counter, process)
            WHERE name IN ('small', 'float') GROUP BY name ORDER BY name""") == [
            ("float", [None], [2.5], None),
            ("small", [-3], [None], None),
        ]
        assert rows(
            "SELECT count(*) FROM nvtx_operations o JOIN nvtx_objects b USING (object) WHERE b.name = 'spin lock'"
        ) == [(6,)]
        codes = {code for (code,) in rows("SELECT code FROM diagnostics WHERE severity <> 'info'")}
    assert not {code for code in codes if "dropped" in code or "damaged" in code}, codes


def one_of(spool: RawSpool, kind: str, name: str) -> Record:
    """The only record of this type and name, in any domain."""
    (record,) = [record for record in spool.of(kind) if record.name == name]
    return record
