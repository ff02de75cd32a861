"""Launches that recorded inside their kernels, from a spool into the report: matching, pieces, clocks, and what is said of losses."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.convert.cuda.spools import Finished, api, work
from warplens import catalog
from warplens.convert.finish import finish
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

GPU = 7_000_000_000_000  # the GPU's clock minus the report's
TEXTS = {
    1: "gemm",
    2: "cudaLaunchKernel_v7000",
    3: "cudaGraphLaunch_v10000",
    4: "_Z4gemmPf",
    5: "buffer",
    6: "0 load\n1 mma\n7 odd one\nnonsense\n",
}
GEMM, LAUNCH, GRAPH, KERNEL, BUFFER, TAGS = range(1, 7)
STORED = 1


def note(
    launch: int, start: int, *, tid: int = 10, name: int = GEMM, device: int = 0, **more: int
) -> dict[str, int]:
    """A launch that the program told of."""
    fields = {
        "launch": launch,
        "start": start,
        "tid": tid,
        "name": name,
        "device": device,
        "buffer": 1,
        "generation": launch,
    }
    return {**fields, "buffer_name": BUFFER, **more}


def units(
    first: int, last: int, count: int = 2, generation: int = 1, events: int = 2, keep: int = 0
) -> bytes:
    """What warps wrote between two times of the report."""
    step = (last - first) // events
    regions = [
        BufferEvent(
            number % 2, GPU + first + number * step, GPU + first + (number + 1) * step, payload=number
        )
        for number in range(events)
    ]
    made = [BufferUnit(regions, cta=cta, sm=cta, begin=GPU + first, end=GPU + last) for cta in range(count)]
    return bytes(buffer_bytes(made, slots=4, generation=generation, keep=keep))


def read(launch: int, start: int, first: int, last: int, **more: int) -> dict[str, int]:
    """What was read of it."""
    fields = {
        "launch": launch,
        "start": start,
        "end": start + 10,
        "domain": STORED,
        "first_ns": GPU + first,
        "last_ns": GPU + last,
    }
    return {**fields, "units": 2, "bytes": 999, "room": 2, "slots": 4, "blocks": 2, "tags": TAGS, **more}


def kernel(correlation: int, start: int, end: int, **more: int) -> dict[str, int]:
    """A kernel of two blocks."""
    return work(correlation, start, end, **{"name": KERNEL, "grid_x": 2, "grid_y": 1, "grid_z": 1, **more})


def report(
    tmp_path: Path,
    noted: Sequence[dict[str, int]],
    reads: Sequence[dict[str, int]],
    pieces: dict[int, Sequence[bytes]],
    *,
    calls: Sequence[dict[str, int]] = (),
    kernels: Sequence[dict[str, int]] = (),
    flags: Sequence[int] = (),
    more: Mapping[str, Sequence[dict[str, int]]] | None = None,
    folder: str = "spool",
    **spool: Any,
) -> Finished:
    """Finish a spool; `pieces`: of each launch, `flags` of each blob."""
    strings = sw.strings(TEXTS)
    at = sw.first_chunk() + len(strings)
    every = [piece for launch in pieces for piece in pieces[launch]]
    blobs = [
        sw.blob(piece, 0, flags=flag)
        for piece, flag in zip(every, [*flags, *[0] * (len(every) - len(flags))], strict=True)
    ]
    _, places = sw.blobs(sw.NO_THREAD, blobs, at)
    waiting = list(places)
    indexes = [
        sw.blob(b"".join(struct.pack("<Q", waiting.pop(0)) for _ in pieces[launch]), 0) for launch in pieces
    ]
    chunk, offsets = sw.blobs(sw.NO_THREAD, [*blobs, *indexes], at)
    index = dict(zip(pieces, offsets[len(blobs) :], strict=True))
    reads = [{"blob": index.get(row["launch"], 0), **row} for row in reads]
    wide: dict[str, Sequence[dict[str, int]]] = {"intrakernel_launch": noted, "intrakernel_read": reads}
    wide |= {kind: rows for kind, rows in (("cuda_api", calls), ("cuda_kernel", kernels)) if rows}
    wide |= more or {}
    chunks = [strings, chunk, *(sw.wide(kind, rows) for kind, rows in wide.items() if rows)]
    (tmp_path / folder).mkdir()
    sw.write(tmp_path / folder, sw.spool(chunks, **spool))
    finish(tmp_path / folder, tmp_path / "r.warplens")
    return Finished(tmp_path / "r.warplens")


def test_the_first_kernel_of_the_thread_that_it_can_be(tmp_path: Path) -> None:
    """Not another thread's, not one before, not a graph's, not one that is too short or too small, and none after the next launch."""
    found = report(
        tmp_path,
        [note(1, 10_000), note(2, 90_000, generation=2), note(3, 200_000, generation=3)],
        [
            read(1, 80_000, 31_000, 39_000),
            read(2, 180_000, 101_000, 109_000),
            read(3, 290_000, 211_000, 219_000),
        ],
        {
            1: [units(31_000, 39_000)],
            2: [units(101_000, 109_000, generation=2)],
            3: [units(211_000, 219_000, generation=3)],
        },
        calls=[
            *(
                api(number, start, start + 100, name=LAUNCH)
                for number, start in ((1, 9_000), (3, 12_000), (4, 12_500), (5, 13_000))
            ),
            api(2, 11_000, 11_100, tid=11, name=LAUNCH),
            api(6, 91_000, 91_100, name=GRAPH),
            api(7, 95_000, 95_100, name=LAUNCH),
        ],
        kernels=[
            kernel(1, 15_000, 29_000),
            kernel(2, 15_000, 29_000),
            kernel(3, 30_000, 31_000),
            kernel(4, 30_000, 50_000, grid_x=1),
            kernel(5, 30_000, 40_000),
            kernel(6, 100_000, 110_000),
            kernel(7, 100_000, 110_500),
        ],
    )
    rows = found["intrakernel_launches"]
    assert [row["correlation"] for row in rows] == [5, 7, None]
    ids = {row["correlation"]: row["id"] for row in found["kernels"]}
    assert [row["kernel"] for row in rows] == [ids[5], ids[7], None]
    assert [row["merged"] for row in rows] == ["kernel", "kernel", "neighbours"]
    assert all(abs(row["offset"] + GPU) <= row["uncertainty"] for row in rows)
    assert [row["name"] for row in rows] == ["gemm"] * 3
    assert found.notes("intrakernel-unmatched")[0]["count"] == 1


def test_without_calls_kernels_are_found_by_their_times(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        [note(1, 10_000), note(2, 60_000, generation=2)],
        [read(1, 55_000, 31_000, 39_000), read(2, 120_000, 81_000, 89_000)],
        {1: [units(31_000, 39_000)], 2: [units(81_000, 89_000, generation=2)]},
        kernels=[kernel(1, 5_000, 9_000), kernel(2, 30_000, 40_000), kernel(3, 80_000, 90_000)],
    )
    assert [row["correlation"] for row in found["intrakernel_launches"]] == [2, 3]


def test_rows_of_units_and_events(tmp_path: Path) -> None:
    tagged = [
        BufferEvent(7, GPU + 20_000, GPU + 21_000),
        BufferEvent(9, GPU + 22_000, GPU + 22_000, flags=1),
        BufferEvent(0, GPU + 20_000, GPU + 23_000, flags=2),
    ]
    made = [BufferUnit(tagged, cta=3, warp=1, sm=5, sm_end=6, begin=GPU + 20_000, end=GPU + 30_000)]
    found = report(
        tmp_path,
        [note(1, 10_000)],
        [read(1, 80_000, 20_000, 30_000)],
        {1: [bytes(buffer_bytes(made, slots=4))]},
    )
    assert found.columns("intrakernel_events", "tag", "kind", "payload") == [
        ("load", "asynchronous", None),
        ("odd one", "region", None),
        ("tag 9", "mark", None),
    ]
    (unit,) = found["intrakernel_units"]
    (launch,) = found["intrakernel_launches"]
    assert [unit[name] for name in ("cta", "warp", "sm", "sm_end", "events", "ended")] == [
        3,
        1,
        5,
        6,
        3,
        True,
    ]
    assert unit["launch"] == launch["id"]
    assert unit["end"] - unit["start"] == 10_000
    assert {row["unit"] for row in found["intrakernel_events"]} == {unit["id"]}
    assert (launch["start"], launch["end"]) == (unit["start"], unit["end"])
    assert launch["start"] >= launch["launched"]


def test_pieces_and_pieces_of_pieces(tmp_path: Path) -> None:
    whole = units(20_000, 30_000, count=5)
    found = report(
        tmp_path,
        [note(1, 10_000)],
        [read(1, 80_000, 20_000, 30_000)],
        {1: [units(20_000, 30_000, count=3), whole[:300], whole[300:]]},
        flags=[0, 4, 0],
    )
    (launch,) = found["intrakernel_launches"]
    assert (launch["units"], launch["events"]) == (8, 16)
    assert [row["id"] for row in found["intrakernel_events"]] == list(range(16))
    assert sorted({row["unit"] for row in found["intrakernel_events"]}) == list(range(8))


def test_damage_is_told_and_left_out(tmp_path: Path) -> None:
    good = units(20_000, 30_000)
    found = report(
        tmp_path,
        [note(1, 10_000), note(2, 100_000), note(3, 200_000)],
        [
            read(1, 80_000, 20_000, 30_000),
            read(2, 180_000, 1 << 62, 5),
            read(3, 280_000, 0, 0, blob=12345, first_ns=0, last_ns=0),
        ],
        {1: [b"\xff" * 500, good[:400], good]},
    )
    rows = found["intrakernel_launches"]
    assert (rows[0]["units"], rows[0]["events"]) == (3, 6)  # of the piece that is cut off, what is there
    assert [row["merged"] for row in rows] == ["bracket", None, None]
    assert found.notes("intrakernel-damaged")


@pytest.mark.parametrize(
    ("result", "value", "code"),
    [
        (2, 201, "unreadable"),
        (3, 0x5A5A5A5A, "no-buffer"),
        (4, 2 << 30, "limit"),
        (5, 0, "no-space"),
        (6, 60_000, "not-awaited"),
        (None, 0, "not-read"),
    ],
)
def test_why_nothing_was_stored(tmp_path: Path, result: int | None, value: int, code: str) -> None:
    reads = (
        []
        if result is None
        else [{"launch": 1, "start": 20_000, "end": 20_001, "domain": result, "value": value}]
    )
    found = report(tmp_path, [note(1, 10_000)], reads, {})
    (row,) = found["intrakernel_launches"]
    assert (row["stored"], row["units"], row["start"], row["merged"], row["clock"]) == (
        False,
        0,
        10_000,
        None,
        None,
    )
    (told,) = found.notes(f"intrakernel-{code}")
    assert told["message"].startswith("1 in-kernel launch of process")


def test_losses_name_the_needed_slots(tmp_path: Path) -> None:
    many = [BufferEvent(0, GPU + 20_000 + number, GPU + 20_001 + number) for number in range(9)]
    made = [
        BufferUnit(many, begin=GPU + 20_000, end=GPU + 30_000),
        BufferUnit(many[:2], cta=1, begin=GPU + 20_000, end=GPU + 30_000, ended=False),
    ]
    found = report(
        tmp_path,
        [note(1, 10_000)],
        [read(1, 80_000, 20_000, 30_000, room=2, claimed=6)],
        {1: [bytes(buffer_bytes(made, slots=4))]},
    )
    (row,) = found["intrakernel_launches"]
    assert (row["dropped"], row["needed_slots"], row["units_lost"], row["unended"]) == (5, 9, 4, 1)
    assert "slots=9" in found.notes("intrakernel-dropped")[0]["message"]
    assert "units=6" in found.notes("intrakernel-units-lost")[0]["message"]
    assert found.notes("intrakernel-unended")


def test_records_that_did_not_fit_into_the_spool(tmp_path: Path) -> None:
    found = report(tmp_path, [note(1, 10_000)], [], {}, dropped={62: 3, 63: 5}, error=28)
    said = [row["message"] for row in found.notes("dropped-records")]
    assert any("3 in-kernel launches" in text for text in said)
    assert any("5 records of kernels" in text for text in said)


def test_calls_of_the_agent_are_no_work_of_the_program(tmp_path: Path) -> None:
    copy = {"bytes": 4096, "copy_kind": 2, "device": 0}
    found = report(
        tmp_path,
        [note(1, 10_000)],
        [read(1, 60_000, 31_000, 39_000, asked=50_000, end=90_000, tid=10)],
        {1: [units(31_000, 39_000)]},
        calls=[
            api(1, 11_000, 11_100, name=LAUNCH),
            api(2, 65_000, 66_000),
            api(3, 67_000, 68_000, tid=11),
            api(4, 89_000, 91_000),
        ],
        kernels=[kernel(1, 30_000, 40_000)],
        more={
            "cuda_memcpy": [work(number, 65_000 + number, 66_000, **copy) for number in (2, 3, 4)],
            "cuda_sync": [
                {"correlation": number, "start": 65_000, "end": 66_000, "kind": 3} for number in (2, 3, 4)
            ],
        },
    )
    assert [row["correlation"] for row in found["cuda_api"]] == [1, 3, 4]
    assert [row["correlation"] for row in found["memcpys"]] == [3, 4]
    assert [row["correlation"] for row in found["syncs"]] == [3, 4]
    assert [row["api"] for row in found["memcpys"]] == [1, 2]
    assert found.notes("intrakernel-read")


def test_kernels_on_the_host_use_the_clock_of_the_report(tmp_path: Path) -> None:
    regions = [BufferEvent(0, 20_000, 21_000)]
    made = [BufferUnit(regions, begin=20_000, end=30_000)]
    other = read(2, 80_000, 20_000, 30_000)
    found = report(
        tmp_path,
        [note(1, 10_000, device=-1), note(2, 11_000, device=-1, generation=1)],
        [read(1, 80_000, 20_000, 30_000, first_ns=20_000, last_ns=30_000), other],
        {1: [bytes(buffer_bytes(made, slots=4))], 2: [units(20_000, 30_000)]},
    )
    rows = found["intrakernel_launches"]
    assert [(row["merged"], row["device"]) for row in rows] == [("host", None), ("bracket", None)]
    assert (rows[0]["offset"], rows[0]["start"], rows[0]["end"]) == (0, 20_000, 30_000)
    assert found["intrakernel_events"][0]["start"] == 20_000


def test_the_first_events_of_all_pieces(tmp_path: Path) -> None:
    """`keep` is of a launch, not of a piece."""
    pieces = [
        units(20_000 + 100 * number, 30_000 + 100 * number, count=3, events=4, keep=7) for number in range(4)
    ]
    found = report(tmp_path, [note(1, 10_000)], [read(1, 80_000, 20_000, 30_300)], {1: pieces})
    (launch,) = found["intrakernel_launches"]
    assert (launch["units"], launch["events"], launch["dropped"]) == (12, 7, 0)
    rows = found["intrakernel_events"]
    begins = sorted(row["start"] for row in rows)
    assert [begin - begins[0] for begin in begins] == [0, 0, 0, 100, 100, 100, 200]
    assert sum(row["events"] for row in found["intrakernel_units"]) == 7
    assert found.notes("intrakernel-keep")[0]["count"] == 4 * 12 - 7


def test_reports_of_several_ranks(tmp_path: Path) -> None:
    """Parts of one report: every row finds its launch and its unit, and launches find their kernels."""
    for rank in range(3):
        report(
            tmp_path,
            [note(1, 10_000)],
            [read(1, 80_000, 21_000, 29_000)],
            {1: [units(21_000, 29_000, count=2 + rank)]},
            calls=[api(1, 12_000, 13_000, name=LAUNCH)],
            kernels=[kernel(1, 20_000, 30_000)],
            folder=f"spool{rank}",
        )
    with open_report(tmp_path / "r.warplens") as opened:
        assert opened.tables["intrakernel_launches"] == 3
        joined = opened.sql(
            """SELECT l.process, count(DISTINCT u.id) AS units, count(*) AS events, bool_and(e.process = k.process) AS own,
                      bool_and(e."start" >= k."start" AND e."end" <= k."end") AS inside
               FROM intrakernel_events e JOIN intrakernel_units u ON e.unit = u.id JOIN intrakernel_launches l ON e.launch = l.id
               JOIN kernels k ON l.kernel = k.id WHERE u.launch = l.id GROUP BY l.process ORDER BY units"""
        ).to_pylist()
        assert len({row.pop("process") for row in joined}) == 3
        assert joined == [
            {"units": 2 + rank, "events": 4 + 2 * rank, "own": True, "inside": True} for rank in range(3)
        ]
        (row,) = (
            row
            for row in catalog.find("stats.tables", "intrakernel_sum")
            .load()
            .table(opened, Selection())
            .to_pylist()[:1]
        )
        assert row["Tag"] in ("load", "mma")


def test_large_tables_are_written_as_such(tmp_path: Path) -> None:
    report(tmp_path, [note(1, 10_000)], [read(1, 80_000, 20_000, 30_000)], {1: [units(20_000, 30_000)]})
    for table, columns in (
        ("intrakernel_events", ("id", "launch", "unit", "start", "end")),
        ("intrakernel_units", ("id", "launch", "start")),
    ):
        (file,) = (tmp_path / "r.warplens" / "tables" / table).glob("*.parquet")
        group = pq.ParquetFile(file).metadata.row_group(0)
        found = {
            group.column(number).path_in_schema: group.column(number) for number in range(group.num_columns)
        }
        for name in columns:
            assert "DELTA_BINARY_PACKED" in found[name].encodings, (table, name)
            assert found[name].is_stats_set, (table, name)
