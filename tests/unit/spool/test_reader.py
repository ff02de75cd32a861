"""What a spool says becomes rows; what it lacks becomes a note."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.unit.spool.decoding import decode
from warplens.errors import SpoolError
from warplens.spool.events import RANGES
from warplens.spool.reader import SpoolFile
from warplens.testing import spool_writer as sw

NAMES = sw.strings({1: "step", 2: "load", 3: "train", 4: "io", 5: "worker", 6: "python"})


def codes(path: Path) -> list[str]:
    with SpoolFile(path) as spool:
        spool.events.plan(1000)
        spool.events.keys(0, 0, 0)
        spool.events.set_strings(spool.strings)
        spool.events.slice(0)
        return [note.code for note in spool.notes()]


def test_columns_of_a_slice_outlive_the_next_one(tmp_path: Path) -> None:
    records = [sw.event("range", at, at + 5, 2) for at in range(0, 2000, 10)]
    with SpoolFile(sw.write(tmp_path, sw.spool([NAMES, sw.records(0, records)]))) as spool:
        events = spool.events
        slices = events.plan(50)
        assert slices > 2
        events.keys(0, 0, 0)
        events.set_strings(spool.strings)
        tables = []
        for number in range(slices):
            events.slice(number)
            tables.append(events.table(RANGES))
            tables[-1].validate(full=True)
    starts = [start for table in tables for start in table.column("start").to_pylist()]
    assert starts == list(range(0, 2000, 10))
    assert {text for table in tables for text in table.column("message").to_pylist()} == {1}  # its place


def test_the_memory_of_a_slice_that_nobody_reads_is_used_again(tmp_path: Path) -> None:
    records = [sw.event("range", at, at + 5, 2) for at in range(0, 2000, 10)]
    with SpoolFile(sw.write(tmp_path, sw.spool([NAMES, sw.records(0, records)]))) as spool:
        events = spool.events
        slices = events.plan(50)
        events.keys(0, 0, 0)
        events.set_strings(spool.strings)
        places = set()
        for number in range(slices):
            events.slice(number)
            places.add(events.table(RANGES).column("start").buffers()[1].address)
    assert slices > 2
    assert len(places) == 1


def test_payloads_of_every_type(tmp_path: Path) -> None:
    bits = {
        4: 0xDEAD_0000_0007,
        5: 0xDEAD_FFFF_FFFE,
        1: (1 << 64) - 1,
        2: 5,
        3: 0x4004000000000000,
        6: 0xDEAD_4020_0000,
        7: 9,
        0: 9,
    }
    records = [
        sw.event("mark", 10 + kind, flags=kind, payload=payload) for kind, payload in sorted(bits.items())
    ]
    _, marks = decode(tmp_path, sw.spool([sw.records(0, records)]))
    assert [(m["payload_int"], m["payload_float"]) for m in marks] == [
        (None, None),
        (-1, None),
        (5, None),
        (None, 2.5),
        (7, None),
        (-2, None),
        (None, 2.5),
        (None, None),
    ]


def test_names_of_domains_categories_and_threads(tmp_path: Path) -> None:
    about = [
        sw.meta("thread", 6, thread=0, tid=77, start=5),
        sw.meta("thread_name", 5, tid=77),
        sw.meta("domain", 3, domain=1),
        sw.meta("category", 4, domain=1, category=2),
    ]
    records = [
        sw.event("range", 10, 20, 1, domain=1, category=2),
        sw.event("range", 30, 40, 1, domain=0, category=2),
        sw.event("range", 50, 60, 1, domain=9),
    ]
    data = sw.spool([NAMES, sw.records(sw.NO_THREAD, about), sw.records(0, records)])
    rows, _ = decode(tmp_path, data)
    assert [(r["domain"], r["category"], r["category_id"]) for r in rows] == [
        ("train", "io", 2),
        (None, "2", 2),
        ("domain 9", None, None),
    ]
    with SpoolFile(next(tmp_path.glob("*.spool"))) as spool:
        assert spool.names.threads == {0: (77, 6, 5)}
        assert spool.strings.get(spool.names.tids[77]) == "worker"


def test_a_chunk_is_handed_from_thread_to_thread(tmp_path: Path) -> None:
    items = [
        sw.event("range", 1, 2),
        sw.meta("thread_switch", thread=4),
        sw.event("range", 3, 4),
        sw.meta("thread_switch", thread=5),
        sw.event("range", 5, 6),
    ]
    rows, _ = decode(tmp_path, sw.spool([sw.records(2, items)]))
    assert [row["thread"] for row in rows] == [2, 4, 5]


def test_an_open_slot_that_is_the_last_record_was_closed(tmp_path: Path) -> None:
    chunks = [
        NAMES,
        sw.records(0, [sw.event("range", 10, 20, 1), sw.event("start_end", 12, 30, 2), sw.origin(1)]),
        sw.open_table(0, [sw.event("range", 5, 0, 1), sw.event("range", 40, 0, 2)]),
        sw.open_table(
            sw.NO_THREAD,
            [
                sw.slot(sw.event("start_end", 12, 0, 2), 1),
                bytes(64),
                sw.slot(sw.event("start_end", 13, 0, 2), 1),
            ],
        ),
        sw.records(3, [sw.event("range", 50, 70, 1)]),
        sw.open_table(3, [sw.event("range", 50, 0, 1)]),
    ]
    rows, _ = decode(tmp_path, sw.spool(chunks, {"start_ns": 1}))
    assert [(r["start"], r["end"], r["thread"], r["unfinished"]) for r in rows] == [
        (5, 70, 0, True),
        (10, 20, 0, False),
        (12, 30, 1, False),
        (13, 70, 1, True),
        (40, 70, 0, True),
        (50, 70, 3, False),
    ]


def test_open_ranges_that_begin_together_nest_as_they_were_pushed(tmp_path: Path) -> None:
    stack = [sw.event("range", 10, 0, name) for name in (1, 2, 3)]
    rows, _ = decode(tmp_path, sw.spool([NAMES, sw.open_table(0, stack)], end_ns=199))
    assert [(r["message"], r["depth"], r["parent"], r["end"]) for r in rows] == [
        ("step", 0, None, 199),
        ("load", 1, 0, 199),
        ("train", 2, 1, 199),
    ]


def test_inherited_and_clipped(tmp_path: Path) -> None:
    rows, _ = decode(
        tmp_path,
        sw.spool([sw.records(0, [sw.event("range", 1, 9, flags=16), sw.event("range", 2, 3, flags=32)])]),
    )
    assert [(r["inherited"], r["clipped"]) for r in rows] == [(True, False), (False, True)]


def test_a_range_that_ends_before_it_began_has_no_duration(tmp_path: Path) -> None:
    rows, _ = decode(
        tmp_path,
        sw.spool(
            [sw.records(0, [sw.event("range", 50, 40), sw.event("range", 1 << 63, 5), sw.event("mark", 60)])]
        ),
    )
    assert [(r["start"], r["end"]) for r in rows] == [(50, 50)]
    assert codes(next(tmp_path.glob("*.spool"))) == ["damaged-records", "negative-duration"]


def test_losses_are_told(tmp_path: Path) -> None:
    data = sw.spool(
        [sw.records(0, [sw.event("range", 1, 2, 77), bytes([200]) + bytes(39)])],
        error=28,
        dropped={0: 3, 1: 4},
    )
    path = sw.write(tmp_path, data)
    with SpoolFile(path) as spool:
        spool.events.plan(10)
        spool.events.keys(0, 0, 0)
        spool.events.set_strings(spool.strings)
        spool.events.slice(0)
        notes = spool.notes()
    assert [(note.code, note.count) for note in notes] == [
        ("dropped-records", 3),
        ("dropped-records", 4),
        ("lost-names", 1),
        ("unknown-records", 1),
    ]
    assert "No space left on device" in notes[0].message
    assert "--spool-dir" in notes[0].message


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    strings = sw.strings({1: b"caf\xe9", 2: "naïve", 3: b"\xff\xfe"})
    rows, _ = decode(
        tmp_path, sw.spool([strings, sw.records(0, [sw.event("range", n, 10 + n, n) for n in (1, 2, 3)])])
    )
    assert [row["message"] for row in rows] == ["caf\ufffd", "naïve", "\ufffd\ufffd"]


def test_a_damaged_chunk_does_not_hide_the_next_one(tmp_path: Path) -> None:
    good = sw.records(0, [sw.event("range", 1, 2)])
    wrong_size = good[:8] + struct.pack("<Q", 1 << 40) + good[16:]
    wrong_magic = b"\x01" + good[1:]
    wrong_stride = good[:6] + struct.pack("<H", 39) + good[8:]
    rows, _ = decode(tmp_path, sw.spool([good, wrong_size, wrong_magic, wrong_stride, good]))
    assert len(rows) == 3
    assert codes(next(tmp_path.glob("*.spool"))) == ["spool-damaged"]


def test_a_string_beyond_its_chunk(tmp_path: Path) -> None:
    broken = sw.chunk(
        2, 0, sw.NO_THREAD, struct.pack("<II", 6, 1) + b"first\0\0\0" + struct.pack("<II", 1 << 30, 2)
    )
    rows, _ = decode(
        tmp_path, sw.spool([broken, sw.records(0, [sw.event("range", 1, 2, 1), sw.event("range", 3, 4, 2)])])
    )
    assert [row["message"] for row in rows] == ["first", None]


@pytest.mark.slow
def test_a_file_cut_anywhere_gives_what_is_whole(tmp_path: Path) -> None:
    data = sw.spool(
        [
            NAMES,
            *(
                sw.records(0, [sw.event("range", 100 * n + k, 100 * n + k + 1, 1) for k in range(90)])
                for n in range(4)
            ),
        ]
    )
    counts = []
    for size in range(len(data), len(data) - 4 * 4096, -1000):
        rows, _ = decode(tmp_path, data[:size])
        counts.append(len(rows))
        assert all(row["message"] == "step" and row["end"] == row["start"] + 1 for row in rows)
    assert counts[0] == 360
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 90


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends at 0 bytes"),
        (b"WLSPOOL1", "ends at 8 bytes"),
        (b"x" * 8192, "offset 0 does not hold WLSPOOL1"),
        (b"WLSPOOL1" + struct.pack("<I", 4) + bytes(8192), "version 4"),
        (sw.spool([])[:4096], "offset 4096: the description of the records is broken"),
        (
            sw.spool([]).replace(b'"range"', b'"renge"'),
            "offset 4096: the description of the records is broken",
        ),
        (sw.spool([]).replace(b'"u8", 16', b'"u8", 39'), "the field end has type u8 at 39"),
        (sw.spool([]).replace(b'"size": 40', b'"size": 99', 1), "the description of the records is broken"),
    ],
)
def test_a_file_that_is_no_spool_is_refused_by_file_and_offset(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = sw.write(tmp_path, data)
    with pytest.raises(SpoolError) as caught:
        SpoolFile(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_fields_may_move_and_new_ones_may_come(tmp_path: Path) -> None:
    """The layout is the file's: here `color` and `category` have changed places and there is a field nobody knows."""
    data = sw.spool([sw.records(0, [sw.event("range", 1, 2, color=5, category=6, flags=8)])])
    moved = data.replace(
        b'["color", "u4", 32], ["category", "u4", 36]', b'["category", "u4", 32], ["color", "u4", 36]'
    )
    assert moved != data
    rows, _ = decode(tmp_path, moved)
    assert (rows[0]["color"], rows[0]["category_id"]) == (6, 5)
