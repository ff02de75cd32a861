"""Wide chunks: whole, half-written, cut off, of another layout, of types that nobody knows."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warplens.spool.reader import SpoolFile
from warplens.spool.wide import FIELDS
from warplens.testing import spool_writer as sw
from warplens.testing.wide_records import WIDE

CALLS = [
    {"start": 10 * number, "end": 10 * number + 5, "correlation": number, "tid": 7, "result": -number}
    for number in range(1, 200)
]


def starts(tmp_path: Path, data: bytes, kind: str = "cuda_api") -> tuple[list[int] | None, list[str]]:
    """The starts of all records of a type, None where there is nothing of it, and the codes of what was noted."""
    with SpoolFile(sw.write(tmp_path, data)) as spool:
        spool.events.plan(10)
        records = spool.wide.get(kind)
        found = None if records is None else records.column("start").tolist()
        return found, [note.code for note in spool.notes()]


def layout(change: dict[str, Any], data: bytes) -> bytes:
    """The spool with another description of its wide records."""
    begin, size = struct.unpack_from("<II", data, 16)
    facts = json.loads(data[begin : begin + size])
    facts["wide"] = change
    text = json.dumps(facts).encode()
    first = struct.unpack_from("<I", data, 12)[0]
    assert begin + len(text) <= first, "no room"
    return (
        data[:20]
        + struct.pack("<I", len(text))
        + data[24:begin]
        + text.ljust(first - begin, b" ")
        + data[first:]
    )


def test_every_field_of_every_type(tmp_path: Path) -> None:
    """Each type as one record with another number in each of its fields."""
    rows = {
        kind: {name: 1 + place for place, (name, _, offset) in enumerate(about["fields"]) if offset >= 8}
        for kind, about in WIDE.items()
    }
    with SpoolFile(
        sw.write(tmp_path, sw.spool([sw.wide(kind, [row, row]) for kind, row in rows.items()]))
    ) as spool:
        assert spool.wide.keys() == WIDE.keys() == FIELDS.keys()
        for kind, row in rows.items():
            records = spool.wide[kind]
            assert len(records) == 2
            whole = records.rows(records.offsets())
            for name, value in row.items():
                assert records.column(name).tolist() == whole[name].tolist() == [value, value], (kind, name)
        assert spool.notes() == []


def test_columns_and_rows_of_many_chunks_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warplens.spool.wide._GATHERED", 300)
    monkeypatch.setattr("warplens.spool.wide._RELEASE_EVERY", 1_000)
    chunks = [
        sw.wide("cuda_api", CALLS[first : first + 30], sequence=100 - first // 30)
        for first in range(0, len(CALLS), 30)
    ]
    chunks.insert(1, sw.wide("cuda_kernel", [{"start": 5, "end": 6}]))
    with SpoolFile(sw.write(tmp_path, sw.spool(chunks))) as spool:
        records = spool.wide["cuda_api"]
        order = np.random.default_rng(1).permutation(len(records))
        picked = records.rows(records.offsets()[order])
        for name in ("start", "end", "correlation", "result"):
            assert picked[name].tolist() == records.column(name)[order].tolist()
        # In the order in which the chunks were taken.
        assert records.column("start").tolist()[:19] == [call["start"] for call in CALLS[180:]]
        assert sorted(records.column("result").tolist()) == sorted(call["result"] for call in CALLS)


def test_a_chunk_ends_at_the_first_empty_head(tmp_path: Path) -> None:
    data = bytearray(sw.wide("cuda_api", CALLS[:10]))
    data[64 + 3 * 40] = 0  # not committed: its body is there, its head is not
    assert starts(tmp_path, sw.spool([bytes(data)])) == ([10, 20, 30], [])


def test_a_record_of_another_type_is_damage(tmp_path: Path) -> None:
    data = bytearray(sw.wide("cuda_api", CALLS[:4]))
    data[64 + 2 * 40] = 33
    assert starts(tmp_path, sw.spool([bytes(data)])) == ([10, 20, 40], ["spool-damaged"])


def test_an_empty_chunk_has_no_records(tmp_path: Path) -> None:
    assert starts(tmp_path, sw.spool([sw.wide("cuda_api", [])])) == ([], [])


def test_a_full_chunk_has_no_end(tmp_path: Path) -> None:
    full = (4096 - 64) // 40
    assert starts(tmp_path, sw.spool([sw.wide("cuda_api", CALLS[:full])])) == (
        [call["start"] for call in CALLS[:full]],
        [],
    )


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    data = sw.spool([sw.wide("cuda_api", CALLS)])
    found, notes = starts(tmp_path, data[: len(data) - 4096])
    assert found == [call["start"] for call in CALLS[: len(found or ())]]
    assert 50 < len(found or ()) < len(CALLS)
    assert notes == ["spool-damaged"]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"id": 32},
        {"id": 32, "size": 40, "fields": WIDE["cuda_api"]["fields"][:-3]},  # no correlation
        {"id": 32, "size": 44, "fields": WIDE["cuda_api"]["fields"]},  # not a multiple of 8
        {"id": 32, "size": 40, "fields": [*WIDE["cuda_api"]["fields"], ["start", "u8", 8]]},  # one name twice
        {"id": 32, "size": 48, "fields": WIDE["cuda_api"]["fields"]},  # longer than the chunk says
        {"id": 300, "size": 40, "fields": WIDE["cuda_api"]["fields"]},
        {"id": None, "size": 40, "fields": "abc"},
    ],
)
def test_a_description_that_does_not_fit_costs_its_type_alone(tmp_path: Path, broken: dict[str, Any]) -> None:
    data = sw.spool([sw.wide("cuda_api", CALLS), sw.wide("cuda_kernel", [{"start": 5, "end": 6}])])
    kernels = {"cuda_kernel": WIDE["cuda_kernel"]}
    changed = layout({"cuda_api": broken, **kernels}, data)
    assert starts(tmp_path, changed) == (None, ["unknown-records"])
    assert starts(tmp_path, changed, "cuda_kernel") == ([5], ["unknown-records"])


def test_a_longer_record_of_a_later_version_is_read(tmp_path: Path) -> None:
    later = {"id": 32, "size": 48, "fields": [*WIDE["cuda_api"]["fields"], ["more", "u8", 40]]}
    rows = b"".join(sw.wide("cuda_api", [call])[64:104] + bytes(8) for call in CALLS[:5])
    data = layout({"cuda_api": later}, sw.spool([sw.chunk(5, 48, sw.NO_THREAD, rows, record=32)]))
    assert starts(tmp_path, data) == ([10, 20, 30, 40, 50], [])


def test_types_of_a_later_version_are_told(tmp_path: Path) -> None:
    data = sw.spool(
        [sw.chunk(5, 16, sw.NO_THREAD, bytes([60]) + bytes(15), record=60), sw.wide("cuda_api", CALLS[:1])]
    )
    assert starts(tmp_path, data) == ([10], ["unknown-records"])


def test_calls_are_the_last_that_was_seen_of_a_process(tmp_path: Path) -> None:
    chunks = [
        sw.wide("cuda_api", CALLS),
        sw.wide("cuda_kernel", [{"start": 1, "end": 1 << 60}]),
        sw.open_table(0, [sw.event("range", 15, 0)]),
    ]
    with SpoolFile(sw.write(tmp_path, sw.spool(chunks))) as spool:
        spool.events.counts()
        assert spool.last_seen == CALLS[-1]["end"]


def test_the_agent_describes_records_as_the_tests_write_them(tmp_path: Path) -> None:
    """Where our writer and format.h part ways, everything here proves nothing."""
    headers = Path(__file__).parents[3] / "native" / "include" / "warplens"
    source = "".join(
        (headers / name).read_text() for name in ("cuda_records.h", "cpu_records.h", "intrakernel_records.h")
    )
    for kind, about in WIDE.items():
        record = "".join(part.capitalize() for part in kind.split("_")) + "Record"
        assert f"static_assert(sizeof({record}) == {about['size']});" in source, kind
