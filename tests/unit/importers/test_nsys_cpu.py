"""What an export says of CPUs, the C library, MPI, OpenMP, OpenACC and system calls: every value, and every version of the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.nsys_export import ERAS, Export, Version, global_id
from tests.unit.importers.cpu_story import MAIN, WORKER, tell
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report

Opened = Callable[..., Report]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    @cache
    def imported(era: Version = ERAS[-1]) -> Report:
        folder = tmp_path_factory.mktemp("era")
        import_file(tell(Export(era)).write(folder / "x.sqlite"), folder / "x.warplens")
        return open_report(folder / "x.warplens")

    return imported


def rows(report: Report, table: str, *columns: str) -> list[tuple[Any, ...]]:
    found = report.table(table, list(columns))
    return list(zip(*(found.column(name).to_pylist() for name in columns), strict=True))


def stacks(report: Report) -> dict[int | None, list[str]]:
    """Each stack of the report, the outermost frame first, by its key."""
    frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
    found: dict[int | None, list[str]] = {None: []}
    for key, row in frames.items():
        found[key] = []
        at: Any = row
        while at is not None:
            found[key].insert(0, f"{at['kind']}:{at['function']}")
            assert at["depth"] == (frames[at["parent"]]["depth"] + 1 if at["parent"] is not None else 0)
            at = frames.get(at["parent"])
    return found


@pytest.mark.slow
def test_calls_of_the_c_library(opened: Opened) -> None:
    report = opened()
    known = stacks(report)
    found = rows(report, "osrt", "start", "end", "name", "group", "result", "error", "stack")
    assert [(*row[:-1], known[row[-1]]) for row in found] == [
        (100, 200, "read", "file", 4096, None, ["native:main", "native:run", "native:__read"]),
        (400, 450, "pthread_mutex_lock", "lock", 0, None, ["native:main", "native:run"]),
        (600, 601, "poll", "wait for events", -1, None, []),
    ]
    ranges = report.sql(
        "SELECT name, message FROM osrt LEFT JOIN nvtx_ranges r ON osrt.range = r.id ORDER BY osrt.start"
    ).to_pylist()
    assert [row["message"] for row in ranges] == ["step", "step", None]
    assert rows(report, "file_access", "start", "end", "name", "operation", "path", "bytes") == [
        (110, 190, "read", "read", "/data/x.bin", 4096),
        (195, 196, "close", "close", "/data/x.bin", None),
    ]
    ((*call, stack),) = rows(report, "syscalls", "start", "end", "name", "result", "stack")
    assert (call, known[stack]) == ([120, 180, "pread64", None], ["native:run", "native:__read"])


def test_stacks_are_one_tree(opened: Opened) -> None:
    report = opened()
    frames = rows(report, "frames", "kind", "function", "module", "path", "file", "line", "address")
    assert sorted(frames, key=repr) == sorted(
        [
            ("native", "main", "app", "/usr/bin/app", None, None, 0x1004),
            ("python", "train.<locals>.step", None, None, "/home/me/train.py", 12, None),
            ("native", "run", "libapp.so", "/usr/lib/libapp.so", None, None, 0x1003),
            ("native", "__read", "libc.so.6", None, None, None, 0x1006),
            ("kernel", "vfs_read", "[kernel.kallsyms]", None, None, None, 0x1008),
            # those of system calls have no addresses
            ("native", "run", "libapp.so", "/usr/lib/libapp.so", None, None, None),
            ("native", "__read", "libc.so.6", None, None, None, None),
        ],
        key=repr,
    )
    ((stack,),) = rows(report, "cuda_api", "stack")
    assert stacks(report)[stack] == ["native:main", "python:train.<locals>.step"]


def test_samples(opened: Opened) -> None:
    report = opened()
    known = stacks(report)
    found = rows(report, "samples", "start", "end", "kind", "count", "weight", "on_cpu", "cpu", "stack")
    assert [(*row[:-1], known[row[-1]]) for row in found] == [
        (100, 150, "native", 2, 100, True, 1, ["native:main", "native:run"]),
        (
            200,
            200,
            "native",
            1,
            50,
            True,
            1,
            ["native:main", "native:run", "native:__read", "kernel:vfs_read"],
        ),
        (250, 250, "native", 1, 50, True, 0, []),
    ]
    said = {row["code"]: row["message"] for row in report.diagnostics.to_pylist()}
    assert "warplens uses 50 ns" in said["sample-interval"]


def test_thread_states(opened: Opened) -> None:
    report = opened()
    found = rows(report, "thread_states", "start", "end", "state", "cpu", "exact", "reason")
    assert found == [
        (100, 200, "running", 1, True, None),
        (200, 400, "blocked", None, True, "kind 3"),
        (400, 500, "running", 0, True, None),
        (500, report.end, "runnable", None, True, None),
    ]
    assert {row["pid"] for row in report.table("processes").to_pylist()} == {100}
    said = [row["message"] for row in report.diagnostics.to_pylist() if row["count"] == 1]
    assert "rows of SCHED_EVENTS of processes that did nothing else were left out" in said


def test_a_file_with_nothing_but_switches(tmp_path: Path) -> None:
    export = Export((3, 1))  # which do not say why a thread stopped
    for start, goes, tid in ((10, 1, MAIN), (20, 0, MAIN), (30, 1, WORKER), (40, 1, MAIN), (35, 1, 0)):
        export.add("SCHED_EVENTS", start=start, cpu=0, isSchedIn=goes, globalTid=tid)
    export.add("SCHED_EVENTS", start=15, cpu=1, isSchedIn=1, globalTid=global_id(200, 201))
    export.string("x")
    import_file(export.write(tmp_path / "x.sqlite"), tmp_path / "x.warplens")
    report = open_report(tmp_path / "x.warplens")
    found = report.sql(
        'SELECT pid, tid, t.start, t."end", state FROM thread_states t JOIN threads USING (thread) '
        "JOIN processes p ON p.process = t.process ORDER BY ALL"
    ).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (100, 100, 10, 20, "running"),
        (100, 100, 20, 40, "blocked"),
        (100, 105, 30, 40, "running"),
    ]


def test_parallel_programming_models(opened: Opened) -> None:
    report = opened()
    columns = (
        "start",
        "end",
        "name",
        "kind",
        "communicator",
        "rank",
        "peer",
        "root",
        "tag",
        "sent",
        "received",
        "bytes",
    )
    assert rows(report, "mpi_events", *columns) == [
        (10, 20, "MPI_Init", "other", None, 3, None, None, None, None, None, None),
        (500, 515, "MPI_Bcast", "collective", 5, 3, None, 0, None, 64, 64, None),
        (520, 530, "MPI_Send", "p2p", 5, 3, 1, None, 8, None, None, 1024),
        (540, 540, "MPI_Wait", "wait", None, 3, None, None, None, None, None, None),
    ]
    assert rows(report, "openmp_events", "start", "end", "kind", "name") == [
        (290, 350, "sync region wait", "omp wait"),
        (300, 400, "parallel", "omp parallel"),
    ]
    assert rows(report, "openacc_events", "start", "end", "kind", "name") == [
        (700, 710, "data", "Enter Data [solve.c:12]"),
        (720, 730, "launch", "Launch"),
    ]
    assert rows(report, "processes", "rank") == [(3,)]
    said = [
        (row["message"], row["count"])
        for row in report.diagnostics.to_pylist()
        if row["code"] == "not-imported"
    ]
    assert ("the rows of the table CUDNN_EVENTS have no place in a report", 1) in said
    assert ("stacks of context switches in COMPOSITE_EVENTS have no place in a report", 1) in said


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
def test_every_version_has_what_it_holds(era: Version, opened: Opened) -> None:
    export = Export(era)
    report = opened(era)
    counts = {
        "osrt": 3,
        "samples": 3,
        "file_access": 2 * export.has("OSRT_FILE_ACCESS_EVENTS"),
        "mpi_events": 4 * export.has("MPI_P2P_EVENTS"),
        "openmp_events": 2,
        "openacc_events": 2,
        "syscalls": int(export.has("SYSCALL")),
    }
    assert {name: report.tables[name] for name in counts} == counts
    expected = (
        {"runnable", "blocked", "running"}
        if export.has("SCHED_EVENTS", "threadState")
        else {"running", "blocked"}
    )
    assert set(report.table("thread_states").column("state").to_pylist()) == expected
    if export.has("MPI_P2P_EVENTS"):
        known = 5 if export.has("MPI_P2P_EVENTS", "commUid") else 1140850688
        assert set(report.table("mpi_events").column("communicator").to_pylist()) == {None, known}
