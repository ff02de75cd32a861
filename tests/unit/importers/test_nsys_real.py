"""Exports of real GPUs, imported, say what plain SQL on the original says. Their folder lies beside the checkout, or these are skipped."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.real_recordings import some
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "nsys"
EXPORTS = sorted(FOLDER.glob("*.sqlite"))
every_export = pytest.mark.parametrize("name", some(path.name for path in EXPORTS) or ["none"])
pytestmark = pytest.mark.skipif(not EXPORTS, reason=f"the exports of real GPUs are not here ({FOLDER})")

# What the importer promises, said a second time as SQL: table of the report, its columns, and a query on the original with the same rows.
# `t`: the table of the original; the texts of `StringIds` come with a subquery.
_PID = "(t.globalPid >> 24) & 0xFFFFFF"
_TEXT = "(SELECT value FROM StringIds WHERE id = t.{})"
_PLACED = f'{_PID}, t.deviceId, t.contextId, t.streamId, t.start, t."end", t.correlationId'
_CALLED = (
    "(SELECT min(r.start) FROM CUPTI_ACTIVITY_KIND_RUNTIME r "
    "WHERE r.correlationId = t.correlationId AND r.globalTid >> 24 = t.globalPid >> 24)"
)
_COPY = "(SELECT label FROM ENUM_CUDA_MEMCPY_OPER WHERE id = t.copyKind)"
_KIND = "(SELECT label FROM ENUM_CUDA_MEM_KIND WHERE id = t.{})"
QUERIES: dict[str, tuple[str, str, str]] = {
    "kernels": (
        "t.name, demangled, mangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, "
        "static_shared, dynamic_shared, local_total",
        "CUPTI_ACTIVITY_KIND_KERNEL",
        f"{_TEXT.format('shortName')}, {_TEXT.format('demangledName')}, {_TEXT.format('mangledName')}, t.gridX, t.gridY, t.gridZ, "
        "t.blockX, t.blockY, t.blockZ, t.registersPerThread, t.staticSharedMemory, t.dynamicSharedMemory, t.localMemoryTotal",
    ),
    "memcpys": (
        "kind, bytes, source_kind, destination_kind, copies",
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        f"{_COPY}, t.bytes, {_KIND.format('srcKind')}, {_KIND.format('dstKind')}, t.copyCount",
    ),
    "memsets": (
        "value, bytes, memory_kind",
        "CUPTI_ACTIVITY_KIND_MEMSET",
        f"t.value, t.bytes, {_KIND.format('memKind')}",
    ),
}


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], tuple[Report, sqlite3.Connection]]]:
    """Return an export as a report and as it is."""
    stack = ExitStack()

    @cache
    def opened(name: str) -> tuple[Report, sqlite3.Connection]:
        report = tmp_path_factory.mktemp("real") / "run.warplens"
        import_file(FOLDER / name, report)
        with closing(sqlite3.connect(f"file:{FOLDER / name}?mode=ro&immutable=1", uri=True)) as source:
            original = stack.enter_context(closing(sqlite3.connect(":memory:")))
            source.backup(original)
        original.execute("CREATE INDEX called ON CUPTI_ACTIVITY_KIND_RUNTIME (correlationId)")
        return stack.enter_context(open_report(report)), original

    with stack:
        yield opened


def there(original: sqlite3.Connection, table: str) -> bool:
    return bool(original.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone())


def asked(report: Report, text: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in report.sql(text).columns), strict=True), key=repr)


def told(original: sqlite3.Connection, text: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, original.execute(text).fetchall()), key=repr)


@every_export
@pytest.mark.parametrize("table", QUERIES)
def test_gpu_work(name: str, table: str, both: Callable[[str], tuple[Report, sqlite3.Connection]]) -> None:
    report, original = both(name)
    columns, source, expected = QUERIES[table]
    if not there(original, source):
        assert report.tables[table] == 0
        return
    ours = asked(
        report,
        f'SELECT pid, device, context, stream, t.start, t."end", t.correlation, a.start, {columns} '
        f"FROM {table} t JOIN processes USING (process) LEFT JOIN cuda_api a ON t.api = a.id AND t.process = a.process",
    )
    theirs = told(original, f"SELECT {_PLACED}, {_CALLED}, {expected} FROM {source} t")
    assert len(theirs) > 0
    assert ours == theirs


@every_export
def test_api_calls(name: str, both: Callable[[str], tuple[Report, sqlite3.Connection]]) -> None:
    report, original = both(name)
    ours = asked(
        report,
        "SELECT pid, tid, a.start, a.\"end\", api = 'driver', result, correlation, a.name FROM cuda_api a "
        "JOIN threads USING (thread) JOIN processes ON processes.process = a.process",
    )
    original.create_function("stem", 1, lambda name: re.sub(r"_v[0-9]{4,5}$", "", name))
    theirs = told(
        original,
        'SELECT (globalTid >> 24) & 0xFFFFFF, globalTid & 0xFFFFFF, start, "end", eventClass, returnValue, correlationId, stem(value) '
        "FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON nameId = id",
    )
    assert [(*row[:4], int(row[4]), *row[5:]) for row in ours] == theirs


@every_export
def test_ranges(name: str, both: Callable[[str], tuple[Report, sqlite3.Connection]]) -> None:
    report, original = both(name)
    if not there(original, "NVTX_EVENTS"):
        assert report.tables["nvtx_ranges"] == 0
        return
    ours = asked(
        report,
        'SELECT pid, tid, r.start, r."end", message, r.style FROM nvtx_ranges r JOIN threads USING (thread) '
        "JOIN processes ON processes.process = r.process",
    )
    theirs = told(
        original,
        'SELECT (globalTid >> 24) & 0xFFFFFF, globalTid & 0xFFFFFF, start, "end", coalesce(value, text), '
        "CASE eventType WHEN 59 THEN 'PushPop' ELSE 'StartEnd' END "
        "FROM NVTX_EVENTS LEFT JOIN StringIds ON textId = id WHERE eventType IN (59, 60)",
    )
    assert ours == theirs


@every_export
def test_innermost_ranges_around_calls(
    name: str, both: Callable[[str], tuple[Report, sqlite3.Connection]]
) -> None:
    report, original = both(name)
    if not there(original, "NVTX_EVENTS"):
        return
    ours = dict(asked(report, 'SELECT a.id, r.start FROM cuda_api a JOIN nvtx_ranges r ON a."range" = r.id'))
    order = 'row_number() OVER (PARTITION BY globalTid >> 24 ORDER BY start, "end" DESC)'
    with closing(original.cursor()) as cursor:
        calls = cursor.execute(
            f"SELECT globalTid, start, {order} FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        ).fetchall()
        ranges = cursor.execute(
            'SELECT globalTid, start, "end" FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY start'
        ).fetchall()
    assert len(ours) > len(calls) // 2
    pids = {pid: key for key, pid in asked(report, "SELECT process, pid FROM processes")}
    for thread, start, number in calls[::37]:
        open_then = [begin for owner, begin, end in ranges if owner == thread and begin <= start < end]
        key = pids[thread >> 24 & 0xFFFFFF] * (1 << 32) + number - 1
        assert ours.get(key) == max(open_then, default=None)


@every_export
def test_waits_and_overhead(name: str, both: Callable[[str], tuple[Report, sqlite3.Connection]]) -> None:
    report, original = both(name)
    ours = asked(
        report, 'SELECT pid, s.start, s."end", kind, correlation FROM syncs s JOIN processes USING (process)'
    )
    kinds = "CASE syncType WHEN 1 THEN 'Event' WHEN 2 THEN 'Stream wait event' WHEN 3 THEN 'Stream' WHEN 4 THEN 'Context' END"
    assert ours == told(
        original,
        f'SELECT {_PID}, start, "end", {kinds}, correlationId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION t',
    )
    tables = [
        table for table in ("CUPTI_ACTIVITY_KIND_OVERHEAD", "PROFILER_OVERHEAD") if there(original, table)
    ]
    both_tables = " UNION ALL ".join(
        f'SELECT start, "end", {_TEXT.format("nameId")} FROM {table} t' for table in tables
    )
    assert asked(report, 'SELECT start, "end", name FROM overhead') == told(original, both_tables)


@every_export
def test_devices_contexts_and_streams(
    name: str, both: Callable[[str], tuple[Report, sqlite3.Connection]]
) -> None:
    report, original = both(name)
    ours = asked(
        report,
        "SELECT pid, context, stream, priority FROM streams JOIN processes USING (process) WHERE kind IS NOT NULL",
    )
    theirs = told(
        original,
        "SELECT processId, contextId, streamId, CASE WHEN priority > 0x7FFFFFFF THEN priority - 0x100000000 ELSE priority END "
        "FROM TARGET_INFO_CUDA_STREAM GROUP BY processId, streamId",
    )
    assert ours == theirs
    used = told(
        original, "SELECT DISTINCT (globalPid >> 24) & 0xFFFFFF, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL"
    )
    assert set(used) <= set(asked(report, "SELECT pid, device FROM devices JOIN processes USING (process)"))
    assert not asked(
        report,
        "SELECT * FROM kernels k ANTI JOIN contexts c ON k.process = c.process AND k.context = c.context",
    )
