"""Stats of OS and system calls, MPI, OpenMP, OpenACC and page faults on an imported export, against plain SQL on that export."""

from __future__ import annotations

import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.reports.nsys_export import Export, global_id, nvtx
from warplens import catalog
from warplens.errors import MissingData, UsageError
from warplens.importers.importing import import_file
from warplens.report import Report, Selection
from warplens.report import open as open_report

Row = dict[str, Any]
_TEXT = "(SELECT value FROM StringIds WHERE id = {})"
_SPAN = '"end" - start'
_MPI = {
    "MPI_P2P_EVENTS": "p2p",
    "MPI_COLLECTIVES_EVENTS": "collective",
    "MPI_START_WAIT_EVENTS": "wait",
    "MPI_OTHER_EVENTS": "other",
}


def tell(seed: int) -> Export:
    """Two processes of two threads each, with a few hundred random events of each kind."""
    chance, export = Random(seed), Export()
    threads = [global_id(pid, pid + more) for pid in (100, 200) for more in (0, 7)]

    def some(table: str, names: str, column: str = "nameId", **more: Any) -> None:
        for _ in range(chance.randint(20, 60)):
            start = chance.randrange(10_000)
            row = {"start": start, "end": start + chance.randrange(500), "globalTid": chance.choice(threads)}
            extra = {key: value(chance) if callable(value) else value for key, value in more.items()}
            export.add(table, **row, **{column: export.string(chance.choice(names.split()))}, **extra)

    def size(chance: Random) -> int:
        return chance.randrange(1 << 40)

    some("OSRT_API", "read poll pthread_mutex_lock", eventClass=27, returnValue=0, callchainId=0)
    some("SYSCALL", "futex epoll_wait", eventClass=0, callchainId=0)
    some("OPENMP_EVENT_KIND_PARALLEL", "region_a region_b", eventClass=78)
    some("OPENMP_EVENT_KIND_SYNC_REGION_WAIT", "barrier", eventClass=78)
    for kind in ("DATA", "LAUNCH"):
        some(f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}", "enter exit", eventKind=1, DeviceType=1, lineNo=0)
    some(
        "MPI_P2P_EVENTS",
        "MPI_Send MPI_Recv",
        "textId",
        tag=5,
        remoteRank=lambda chance: chance.randrange(4),
        size=size,
    )
    some("MPI_COLLECTIVES_EVENTS", "MPI_Bcast MPI_Reduce", "textId", rootRank=0, size=size, recvSize=size)
    some("MPI_START_WAIT_EVENTS", "MPI_Wait", "textId")
    some("MPI_OTHER_EVENTS", "MPI_Comm_rank", "textId")
    for place, pid in enumerate((100, 200)):
        export.add("MPI_RANKS", globalTid=global_id(pid, pid), rank=place + 4)
        for _ in range(20):
            where = export.string(chance.choice(("fill(float*)", "0x4242", "")))
            fault = {
                "start": chance.randrange(10_000),
                "globalPid": global_id(pid),
                "address": 1,
                "module": export.string("app"),
            }
            export.add("CUDA_UM_CPU_PAGE_FAULT_EVENTS", **fault, CpuInstruction=where)
    nvtx(export, 59, 1_000, 4_000, (100, 107), text="step")
    return export


class Both:
    """An export: as a report, and as it was written."""

    def __init__(self, folder: Path, seed: int) -> None:
        file = tell(seed).write(folder / "run.sqlite")
        import_file(file, folder / "run.warplens")
        self.report: Report = open_report(folder / "run.warplens")
        with closing(sqlite3.connect(file)) as source:
            self.original = sqlite3.connect(":memory:")
            source.backup(self.original)

    def stat(self, name: str, selection: Selection | None = None, **options: Any) -> list[Row]:
        found: list[Row] = (
            catalog.find("stats.tables", name)
            .load()
            .table(self.report, selection or Selection(), **options)
            .to_pylist()
        )
        return found

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.original.execute(text)]


@pytest.fixture(scope="module", params=[1, 2])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    found = Both(tmp_path_factory.mktemp("export"), request.param)
    with found.report, closing(found.original):
        yield found


def compare(
    rows: list[Row], keys: list[str], pairs: list[tuple[Any, ...]], *, total: str, count: str, unit: str
) -> None:
    """The rows of a summary against pairs of keys and value."""
    expected = defaultdict[tuple[Any, ...], list[int]](list)
    for pair in pairs:
        expected[pair[:-1]].append(pair[-1])
    names = [total, count, *(f"{name} ({unit})" for name in ("Avg", "Med", "Min", "Max", "StdDev"))]
    found = {tuple(row[key] for key in keys): [row[name] for name in names] for row in rows}
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        middle = statistics.fmean(values), statistics.median(values), min(values), max(values)
        assert found[key] == pytest.approx([sum(values), len(values), *middle, deviation], rel=1e-9), key
    assert [row[total] for row in rows] == sorted((row[total] for row in rows), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keys", "count", "text"),
    [
        ("osrt_sum", ["Name"], "Num Calls", f"SELECT {_TEXT.format('nameId')}, {_SPAN} FROM OSRT_API"),
        ("syscall_sum", ["Name"], "Num Calls", f"SELECT {_TEXT.format('nameId')}, {_SPAN} FROM SYSCALL"),
        (
            "mpi_event_sum",
            ["Source", "Name"],
            "Instances",
            " UNION ALL ".join(
                f"SELECT '{kind}', {_TEXT.format('textId')}, {_SPAN} FROM {table}"
                for table, kind in _MPI.items()
            ),
        ),
        (
            "openmp_sum",
            ["Kind", "Name"],
            "Count",
            f"SELECT 'parallel', {_TEXT.format('nameId')}, {_SPAN} FROM OPENMP_EVENT_KIND_PARALLEL UNION ALL "
            f"SELECT 'sync region wait', {_TEXT.format('nameId')}, {_SPAN} FROM OPENMP_EVENT_KIND_SYNC_REGION_WAIT",
        ),
        (
            "openacc_sum",
            ["Kind", "Name"],
            "Count",
            f"SELECT 'data', {_TEXT.format('nameId')}, {_SPAN} FROM CUPTI_ACTIVITY_KIND_OPENACC_DATA UNION ALL "
            f"SELECT 'launch', {_TEXT.format('nameId')}, {_SPAN} FROM CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH",
        ),
    ],
)
def test_sums(both: Both, name: str, keys: list[str], count: str, text: str) -> None:
    rows = both.stat(name)
    compare(rows, keys, both.sql(text), total="Total Time (ns)", count=count, unit="ns")
    whole = sum(row["Total Time (ns)"] for row in rows)
    assert [row["Time (%)"] for row in rows] == pytest.approx(
        [100 * row["Total Time (ns)"] / whole for row in rows]
    )
    apart = both.stat(name, by="thread")
    assert {row["PID"] for row in apart} == {100, 200}
    assert sum(row["Total Time (ns)"] for row in apart) == whole
    with pytest.raises(UsageError, match=":by=nothing"):
        both.stat(name, by="nothing")


def test_sums_of_a_part(both: Both) -> None:
    text = f'SELECT {_TEXT.format("textId")}, {_SPAN} FROM MPI_P2P_EVENTS WHERE start < 2000 AND "end" > 1000'
    rows = [row for row in both.stat("mpi_event_sum", Selection((1_000, 2_000))) if row["Source"] == "p2p"]
    compare(rows, ["Name"], both.sql(text), total="Total Time (ns)", count="Instances", unit="ns")
    ranged = f"{text.replace('2000', '4000')} AND globalTid = {global_id(100, 107)}"
    rows = [
        row
        for row in both.stat("mpi_event_sum", Selection(nvtx=("step", None, None)))
        if row["Source"] == "p2p"
    ]
    compare(rows, ["Name"], both.sql(ranged), total="Total Time (ns)", count="Instances", unit="ns")


def test_mpi_msg_size_sum(both: Both) -> None:
    name = _TEXT.format("textId")
    text = f"""SELECT 'p2p', {name}, size FROM MPI_P2P_EVENTS UNION ALL SELECT 'coll_send', {name}, size FROM MPI_COLLECTIVES_EVENTS
    UNION ALL SELECT 'coll_recv', {name}, recvSize FROM MPI_COLLECTIVES_EVENTS"""
    total = "Total Message Volume (bytes)"
    compare(
        both.stat("mpi_msg_size_sum"),
        ["Source", "Name"],
        both.sql(text),
        total=total,
        count="Instances",
        unit="bytes",
    )
    apart = both.stat("mpi_msg_size_sum", by="process")
    assert {row["Rank"] for row in apart} == {4, 5}
    assert sum(row[total] for row in apart) == sum(row[2] for row in both.sql(text))


def test_mpi_event_trace(both: Both) -> None:
    rank = "(SELECT rank FROM MPI_RANKS r WHERE r.globalTid >> 24 = t.globalTid >> 24)"
    about = f'start, "end", "end" - start, {_TEXT.format("textId")}, (globalTid >> 24) & 0xFFFFFF, globalTid & 0xFFFFFF'
    more = {
        "MPI_P2P_EVENTS": "tag, {}, remoteRank, NULL, size, NULL, NULL",
        "MPI_COLLECTIVES_EVENTS": "NULL, {}, NULL, rootRank, NULL, size, recvSize",
    }
    parts = [
        f"SELECT {about}, {more.get(table, 'NULL, {}, NULL, NULL, NULL, NULL, NULL').format(rank)} FROM {table} t"
        for table in _MPI
    ]
    rows = both.stat("mpi_event_trace")
    columns = [
        "Start (ns)",
        "End (ns)",
        "Duration (ns)",
        "Event",
        "Pid",
        "Tid",
        "Tag",
        "Rank",
        "PeerRank",
        "RootRank",
        "Size",
    ]
    found = [tuple(row[name] for name in (*columns, "CollSendSize", "CollRecvSize")) for row in rows]
    assert sorted(found, key=repr) == sorted(both.sql(" UNION ALL ".join(parts)), key=repr)
    assert [row[0] for row in found] == sorted(row[0] for row in found)


def test_um_cpu_page_faults_sum(both: Both) -> None:
    text = f"""SELECT (globalPid >> 24) & 0xFFFFFF, coalesce(nullif({_TEXT.format("CpuInstruction")}, ''), '[unknown]'), count(*)
    FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS GROUP BY 1, 2"""
    rows = both.stat("um_cpu_page_faults_sum")
    assert sorted(
        (row["PID"], row["CPU Instruction Address"], row["CPU Page Faults"]) for row in rows
    ) == sorted(both.sql(text))
    assert [row["CPU Page Faults"] for row in rows] == sorted(
        (row["CPU Page Faults"] for row in rows), reverse=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mpi_event_sum", "MPI trace data"),
        ("mpi_event_trace", "MPI trace data"),
        ("mpi_msg_size_sum", "sizes of MPI messages"),
        ("openmp_sum", "OpenMP event data"),
        ("openacc_sum", "OpenACC event data"),
        ("syscall_sum", "system call trace data"),
        ("um_cpu_page_faults_sum", "CUDA Unified Memory CPU page faults data"),
    ],
)
def test_a_report_without_it(name: str, words: str, tmp_path: Path) -> None:
    export = Export()
    nvtx(export, 59, 1, 2, text="x")
    export.string("x")
    import_file(export.write(tmp_path / "x.sqlite"), tmp_path / "x.warplens")
    with (
        open_report(tmp_path / "x.warplens") as report,
        pytest.raises(MissingData, match=f"does not contain {words}"),
    ):
        catalog.find("stats.tables", name).load().table(report, Selection())
