"""nccl_sum and nccl_trace on calls with payloads as NCCL lays them out."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from warplens import catalog
from warplens.convert.finish import finish
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


STATIC = 1 << 24  # as the numbers of NCCL's schemas begin
INT, UINT64, SIZE = 5, 18, 22  # NVTX's
COMM, BYTES = ("NCCL communicator ID", UINT64, 0), ("Message size [bytes]", SIZE, 8)
OPERATION = STATIC + 99
SCHEMAS = {
    "CommInitRank": [COMM, ("No. of ranks", INT, 8), ("Rank", INT, 12), ("CUDA device", INT, 16)],
    "AllReduce": [COMM, BYTES, ("Reduction operation", OPERATION, 16)],
    "Broadcast": [COMM, BYTES, ("Root", INT, 16)],
    "Send": [COMM, BYTES, ("Peer rank", INT, 16)],
}
A, B = 0xFFFF_FFFF_0000_0001, 2  # communicators; that of B was made before the recording
CALLS = [
    ("CommInitRank", 100, 200, struct.pack("<QiiiI", A, 4, 3, 7, 0)),
    ("AllReduce", 1000, 1100, struct.pack("<QQiI", A, 5_000_000, 0, 0)),
    ("AllReduce", 2000, 2300, struct.pack("<QQiI", A, 1_000_000, 0, 0)),
    ("AllReduce", 3000, 3050, struct.pack("<QQiI", A, 4_000, 2, 0)),
    ("Broadcast", 4000, 4010, struct.pack("<QQiI", A, 8, 1, 0)),
    ("Send", 5000, 5020, struct.pack("<QQiI", B, 16, 2, 0)),
]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    texts = {
        10: "NCCL",
        11: sw.definition(
            "enum",
            name="ncclRedOp_t",
            size=4,
            entries=[{"name": "Sum", "value": 0}, {"name": "Max", "value": 2}],
        ),
    }
    defined = [sw.define(11, OPERATION, domain=1)]
    for number, (name, entries) in enumerate(SCHEMAS.items()):
        fields = [
            {"name": field, "type": kind, "flags": 0, "array": 0, "offset": offset}
            for field, kind, offset in entries
        ]
        texts[20 + number] = sw.definition("schema", name=name, type=1, flags=0, size=24, entries=fields)
        texts[30 + number] = f"nccl{name}"
        defined.append(sw.define(20 + number, STATIC + number, domain=1))
    number_of = {name: number for number, name in enumerate(SCHEMAS)}
    texts[40] = "ncclGroupStart"
    chunk, at = sw.blobs(
        0, [sw.blob(data, STATIC + number_of[name]) for name, _, _, data in CALLS], sw.first_chunk()
    )
    events = [
        sw.event("range", start, end, 30 + number_of[name], domain=1, flags=7, payload=place)
        for (name, start, end, _), place in zip(CALLS, at, strict=True)
    ]
    events.append(sw.event("range", 6000, 6001, 40, domain=1))  # one without payload
    events.append(sw.event("range", 7000, 7001, 30))  # called like NCCL's, in another domain
    about = [sw.meta("thread", thread=0, tid=10, start=1), sw.meta("domain", 10, domain=1)]
    sw.write(
        tmp_path / "spool", sw.spool([chunk, sw.strings(texts), sw.records(0, [*about, *defined, *events])])
    )
    finish(tmp_path / "spool", tmp_path / "r.warplens")
    return open_report(tmp_path / "r.warplens")


def _rows(report: Report, stat: str, selection: Selection | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        catalog.find("stats.tables", stat).load().table(report, selection or Selection()).to_pylist()
    )
    return found


def test_every_call_with_its_arguments(report: Report) -> None:
    found = _rows(report, "nccl_trace")
    assert list(found[0]) == [
        *(
            "Start (ns)",
            "Duration (ns)",
            "Name",
            "Bytes",
            "Operation",
            "Root",
            "Peer",
            "Communicator",
            "Rank",
            "Ranks",
            "Device",
            "PID",
            "TID",
        )
    ]
    assert [tuple(row.values())[1:11] for row in found] == [
        (100, "ncclCommInitRank", None, None, None, None, hex(A), 3, 4, 7),
        (100, "ncclAllReduce", 5_000_000, "Sum", None, None, hex(A), 3, 4, 7),
        (300, "ncclAllReduce", 1_000_000, "Sum", None, None, hex(A), 3, 4, 7),
        (50, "ncclAllReduce", 4_000, "Max", None, None, hex(A), 3, 4, 7),
        (10, "ncclBroadcast", 8, None, 1, None, hex(A), 3, 4, 7),
        (20, "ncclSend", 16, None, None, 2, hex(B), None, None, None),
        (1, "ncclGroupStart", None, None, None, None, None, None, None, None),
    ]
    assert found[1]["Start (ns)"] - found[0]["Start (ns)"] == 900


def test_calls_are_summed_up_by_what_they_do(report: Report) -> None:
    found = _rows(report, "nccl_sum")
    assert [
        (row["Name"], row["Operation"], row["Ranks"], row["Calls"], row["Total Time (ns)"]) for row in found
    ] == [
        ("ncclAllReduce", "Sum", 4, 2, 400),
        ("ncclCommInitRank", None, 4, 1, 100),
        ("ncclAllReduce", "Max", 4, 1, 50),
        ("ncclSend", None, None, 1, 20),
        ("ncclBroadcast", None, 4, 1, 10),
        ("ncclGroupStart", None, None, 1, 1),
    ]
    first = found[0]
    assert [first[f"{name} (ns)"] for name in ("Avg", "Med", "Min", "Max")] == [200.0, 200.0, 100, 300]
    assert [first[f"{name} (MB)"] for name in ("Total", "Avg", "Min", "Max")] == [6.0, 3.0, 1.0, 5.0]
    assert found[1]["Total (MB)"] is None
    assert sum(row["Time (%)"] for row in found) == pytest.approx(100)


def test_a_selection_knows_the_communicators_that_were_made_before_it(report: Report) -> None:
    origin = report.origin
    [row] = _rows(report, "nccl_trace", Selection.parse(f"{1900 - origin}ns/{2400 - origin}ns"))
    assert (row["Bytes"], row["Ranks"]) == (1_000_000, 4)


def test_payloads_that_came_as_json_count_too(tmp_path: Path) -> None:
    payload = {
        "NCCL communicator ID": 5,
        "Message size [bytes]": 12,
        "Reduction operation": "Min",
        "Root": True,
    }
    timeline(tmp_path / "r.warplens", "main@NCCL |[ncclReduce]", payloads={"ncclReduce": [payload]})
    [row] = _rows(open_report(tmp_path / "r.warplens"), "nccl_trace")
    assert (row["Bytes"], row["Operation"], row["Communicator"], row["Root"]) == (12, "Min", "0x5", None)


@pytest.mark.parametrize("stat", ["nccl_sum", "nccl_trace"])
def test_without_nccl_there_is_nothing_to_show(stat: str, tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ]")
    with pytest.raises(MissingData, match="does not contain NCCL data"):
        _rows(open_report(tmp_path / "r.warplens"), stat)
