"""The exporter `nsys_sqlite`: what comes back from its file is what went in, and tools that read nsys' files can read ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.support.reports.nsys_export import TABLES as KNOWN
from tests.support.reports.nsys_export import Export
from tests.support.reports.real_recordings import some
from tests.support.thorough import alike
from tests.unit.exporters import nsys_reports
from tests.unit.importers import cpu_story, story
from warplens import catalog
from warplens.exporters.nsys.layout import columns
from warplens.importers.importing import import_file
from warplens.model.tables import TABLES
from warplens.report import Report
from warplens.report import open as open_report
from warplens.storage.writer import Facts, write_part
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "nsys"
REAL = sorted(FOLDER.glob("*.sqlite"))
LACKING = pytest.mark.skip(reason=f"the exports of real GPUs are not here ({FOLDER})")
EXPORTER = catalog.find("exporters.formats", "nsys_sqlite")
# What the format has no place for; what is said about the file itself; and begins that are those of the first thing seen.
LOST = {
    "processes": {
        "parent",
        "parent_pid",
        "local_rank",
        "start",
        "end",
        "exit_status",
        "exited",
        "began",
        "ended",
        "not_recorded",
    },
    "threads": {"start"},
    "targets": {"boot_id", "memory"},
}
IDS = {("payloads", "event")}
ELSEWHERE = {"capture_windows", "clocks", "diagnostics", "nvtx_objects", "frames", "nvtx_schemas"}


@contextmanager
def round_trip(first: Report, folder: Path) -> Iterator[Report]:
    EXPORTER.load().write(first, folder / "x.sqlite")
    import_file(folder / "x.sqlite", folder / "back.warplens")
    with open_report(folder / "back.warplens") as back:
        yield back


def facts(report: Report) -> dict[str, list[tuple[Any, ...]]]:
    """All tables, whatever the keys are: processes are pids, threads tids, stacks texts, and an id is which row of its process it is."""
    pids = {row["process"]: row["pid"] for row in report.table("processes").to_pylist()}
    tids = {row["thread"]: (pids[row["process"]], row["tid"]) for row in report.table("threads").to_pylist()}
    stacks, placeless = stack_texts(report), stack_texts(report, "address")
    unfinished = pa.compute.invert(report.table("nvtx_ranges").column("unfinished")).to_pylist()
    found = {}
    for name, table in TABLES.items():
        if name in ELSEWHERE:
            continue
        rows = report.table(name)
        columns = []
        for column in table.columns:
            values = rows.column(column.name).to_pylist()
            if column.name in LOST.get(name, ()):
                continue
            if column.clock:
                values = [None if value is None else value - report.origin for value in values]
                if (name, column.name) == ("nvtx_ranges", "end"):
                    values = [
                        value if known else None for value, known in zip(values, unfinished, strict=True)
                    ]
            elif column.name == "process":
                values = [pids[value] for value in values]
            elif column.name in ("thread", "end_thread"):
                values = [None if value is None else tids[value] for value in values]
            elif column.name == "stack":
                values = [
                    (placeless if name == "syscalls" else stacks)[value] for value in values
                ]  # chains of those have no addresses
            elif (
                (name, column.name) in IDS
                or column.name in ("id", "range", "parent")
                or (column.name == "api" and column.type == "int64")
            ):
                values = [
                    None if value is None else (pids[value >> 32], value & 0xFFFFFFFF) for value in values
                ]
            elif (name, column.name) == ("nvtx_ranges", "depth"):  # of start/end ranges a lane, as it is free
                values = [
                    None if kind == "StartEnd" else value
                    for value, kind in zip(values, rows.column("style").to_pylist(), strict=True)
                ]
            columns.append([repr(value) for value in values])
        found[name] = sorted(zip(*columns, strict=True))
    return found


def stack_texts(report: Report, *without: str) -> dict[int | None, str | None]:
    frames = {row.pop("frame"): row for row in report.table("frames").to_pylist()}
    for row in frames.values():  # those that the format cannot hold
        for name in ("process", "first_line", "build_id", *without):
            row.pop(name)

    def text(key: int | None) -> str:
        return (
            ""
            if key is None
            else text(frames[key]["parent"])
            + repr([value for name, value in frames[key].items() if name != "parent"])
        )

    return {None: None, **{key: text(key) for key in frames}}


def same(first: Report, back: Report) -> None:
    one, other = facts(first), facts(back)
    for name in one:
        assert other[name] == one[name], name
    said = {(row["severity"], row["message"]) for row in back.diagnostics.to_pylist()}
    assert {(row["severity"], row["message"]) for row in first.diagnostics.to_pylist()} <= said
    assert (
        first.origin + first.manifests[0].realtime_offset == back.origin + back.manifests[0].realtime_offset
    )


@pytest.mark.parametrize("seed", alike(range(12), 5))
def test_every_fact_that_the_format_can_carry_comes_back(seed: int, tmp_path: Path) -> None:
    with open_report(nsys_reports.make(Random(seed), tmp_path)) as first, round_trip(first, tmp_path) as back:
        same(first, back)


@pytest.mark.parametrize("tell", [story.tell, cpu_story.tell])
def test_an_imported_report_comes_back(tell: Any, tmp_path: Path) -> None:
    file = tell(Export()).write(tmp_path / "in.sqlite")
    import_file(file, tmp_path / "in.warplens")
    with open_report(tmp_path / "in.warplens") as first, round_trip(first, tmp_path) as back:
        one, other = facts(first), facts(back)
        assert {name for name in one if one[name] != other[name]} == set()


@pytest.mark.parametrize(
    "name",
    some(path.name for path in REAL)
    or [pytest.param("none", marks=pytest.mark.skip(reason="no real exports"))],
)
def test_real_exports_come_back(name: str, tmp_path: Path) -> None:
    import_file(FOLDER / name, tmp_path / "in.warplens")
    with open_report(tmp_path / "in.warplens") as first, round_trip(first, tmp_path) as back:
        one, other = facts(first), facts(back)
        assert {name for name in one if one[name] != other[name]} == set()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """The file of a random report in which something is in every table."""
    seed = next(
        seed for seed in range(100) if _is_full(nsys_reports.make(Random(seed), _new(tmp_path / str(seed))))
    )
    with open_report(tmp_path / str(seed) / "random.warplens") as report:
        EXPORTER.load().write(report, tmp_path / "x.sqlite")
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        yield connection


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _is_full(path: Path) -> bool:
    wanted = (
        "kernels",
        "memcpys",
        "cuda_api",
        "nvtx_ranges",
        "osrt",
        "samples",
        "thread_states",
        "gpu_metrics",
        "syncs",
        "mpi_events",
    )
    with open_report(path) as report:
        return all(report.tables[name] for name in wanted)


def test_tables_and_columns_are_those_of_nsys(written: sqlite3.Connection) -> None:
    found = [name for (name,) in written.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert {name for name in found if not name.startswith(("ENUM_", "OPENMP_", "ANALYSIS_"))} <= {
        head.partition("@")[0] for head in KNOWN
    } | {"CUPTI_ACTIVITY_KIND_OPENACC_OTHER"}
    for name in found:
        if not name.startswith("ENUM_"):
            assert [row[1] for row in written.execute(f'PRAGMA table_info("{name}")')] == columns(name)
            assert written.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] > 0
    for text, key in (
        ("nameId", "CUPTI_ACTIVITY_KIND_RUNTIME"),
        ("demangledName", "CUPTI_ACTIVITY_KIND_KERNEL"),
        ("nameId", "OSRT_API"),
    ):
        lost = f"SELECT count(*) FROM {key} t LEFT JOIN StringIds s ON s.id = t.{text} WHERE s.value IS NULL"
        assert written.execute(lost).fetchone() == (0,)


def test_queries_of_other_tools_work_on_an_export(written: sqlite3.Connection) -> None:
    def ask(text: str) -> list[tuple[Any, ...]]:
        return written.execute(text).fetchall()

    about = dict(ask("SELECT name, value FROM META_DATA_EXPORT"))
    assert about["EXPORT_SCHEMA_VERSION"] == "3.28.1"
    assert (about["EXPORT_SCHEMA_VERSION_MAJOR"], about["EXPORT_PRODUCT_NAME"]) == ("3", "warplens")
    assert {
        pid for (pid,) in ask("SELECT (globalTid >> 24) & 0xFFFFFF FROM CUPTI_ACTIVITY_KIND_RUNTIME")
    } <= {1000, 1001}
    assert {vm for (vm,) in ask("SELECT globalTid >> 48 FROM CUPTI_ACTIVITY_KIND_RUNTIME")} == {1}
    joined = """SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p ON p.globalPid = k.globalPid
    JOIN TARGET_INFO_CUDA_DEVICE d ON d.cudaId = k.deviceId AND d.pid = p.pid JOIN TARGET_INFO_GPU g ON g.id = d.gpuId"""
    assert ask(joined) == ask("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert ask("SELECT name FROM ENUM_CUPTI_SYNC_TYPE WHERE id = 3") == [
        ("CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE",)
    ]
    assert ask("SELECT label FROM ENUM_CUDA_MEMCPY_OPER WHERE id = 1") == [("Host-to-Device",)]
    depths = "SELECT count(*), count(DISTINCT id || ' ' || stackDepth) FROM SAMPLING_CALLCHAINS"
    assert len(set(ask(depths)[0])) == 1
    assert ask(
        "SELECT count(*) FROM SAMPLING_CALLCHAINS c LEFT JOIN COMPOSITE_EVENTS e USING (id) WHERE e.id IS NULL"
    ) == [(0,)]
    assert ask("SELECT count(DISTINCT eventId) = count(*) FROM NVTX_EVENTS") == [(1,)]
    assert ask("SELECT min(start) >= 0 FROM NVTX_EVENTS") == [(1,)]


def test_a_recording_without_a_gpu(tmp_path: Path) -> None:
    timeline(tmp_path / "small.warplens", "main |[step          ][it's  ]\nmain |   [load ]")
    with open_report(tmp_path / "small.warplens") as first, round_trip(first, tmp_path) as back:
        text = 'SELECT message, "end" - start AS took, depth FROM nvtx_ranges ORDER BY start, depth'
        assert first.tables["nvtx_ranges"] == 3
        assert back.sql(text).to_pylist() == first.sql(text).to_pylist()


def test_hosts_are_machines(tmp_path: Path) -> None:
    """The same pid on two hosts is two processes."""
    rows = [
        {
            "process": key,
            "pid": 7,
            "parent_pid": 0,
            "host": host,
            "executable": "x",
            "command": "x",
            "start": 0,
            "end": 9,
            "primary": not key,
            "exited": True,
        }
        for key, host in enumerate(("a", "b"))
    ]
    threads = [
        {"thread": key * 2**24, "process": key, "tid": 7, "name": f"of {key}", "start": 0} for key in (0, 1)
    ]
    about = {"style": "PushPop", "depth": 0, "unfinished": False, "inherited": False, "clipped": False}
    ranges = [
        {
            "id": key * 2**32,
            "process": key,
            "thread": key * 2**24,
            "start": 1,
            "end": 5,
            "message": "r",
            **about,
        }
        for key in (0, 1)
    ]
    targets = [
        {
            "host": host,
            "boot_id": host,
            "os": "",
            "kernel": "6",
            "machine": "",
            "cpu": "",
            "cpus": 1,
            "memory": 0,
        }
        for host in "ab"
    ]
    tables = {"processes": rows, "threads": threads, "nvtx_ranges": ranges, "targets": targets}
    write_part(tmp_path / "two.warplens", Facts("p", "a", "b", end=9), tables)
    with open_report(tmp_path / "two.warplens") as first, round_trip(first, tmp_path) as back:
        assert sorted(back.table("processes").column("host").to_pylist()) == ["a", "b"]
        assert back.tables["nvtx_ranges"] == 2
        assert sorted(back.table("threads").column("name").to_pylist()) == ["of 0", "of 1"]


def test_a_report_with_nothing_in_it_and_one_kind_of_samples(tmp_path: Path) -> None:
    write_part(tmp_path / "empty.warplens", Facts("p", "a", "b", end=9), {})
    with open_report(tmp_path / "empty.warplens") as report:
        EXPORTER.load().write(report, tmp_path / "x.sqlite", kind="python")
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM StringIds").fetchone() == (0,)
