"""Files that are no exports, broken or made to harm: a clear error that names the file, or what can be had and a word about the rest."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.reports.nsys_export import Export, call, global_id, kernel, nvtx, work
from tests.unit.importers import cpu_story
from tests.unit.importers.story import MARK, PUSH_POP, tell
from warplens.errors import NotAReport, ReportError, WarplensError
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report


def imported(path: Path) -> Report:
    report = path.with_suffix(".warplens")
    import_file(path, report)
    return open_report(report)


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def said(report: Report) -> dict[str, int]:
    return {
        row["message"]: row["count"]
        for row in report.diagnostics.to_pylist()
        if row["severity"] == "warning" and row["code"] != "nsys"
    }


@pytest.mark.parametrize("content", [b"", b"SQLite format 2\0", b"\0" * 4096, b"PK\3\4 a zip"])
def test_a_file_that_is_no_sqlite_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    with pytest.raises(NotAReport, match=r"x\.sqlite"):
        import_file(path, tmp_path / "x.warplens")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.sqlite"]


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = changed(
        tmp_path / "x.sqlite", "CREATE TABLE bookmarks (title TEXT)", "INSERT INTO bookmarks VALUES ('a')"
    )
    with pytest.raises(NotAReport, match=r"x\.sqlite is a SQLite file, but not an export of Nsight Systems"):
        import_file(path, tmp_path / "x.warplens")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.sqlite"]


def test_a_truncated_file_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    whole = tell(Export()).write(tmp_path / "whole.sqlite").read_bytes()
    path = tmp_path / "cut.sqlite"
    for share in (0.02, 0.3, 0.6, 0.9, 0.99):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(ReportError, match=r"cut\.sqlite"):
            import_file(path, tmp_path / "cut.warplens")
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cut.sqlite", "whole.sqlite"]


@pytest.mark.slow
def test_damaged_bytes_never_end_in_anything_but_a_report_or_an_error(tmp_path: Path) -> None:
    whole = cpu_story.tell(tell(Export())).write(tmp_path / "whole.sqlite").read_bytes()
    chance = random.Random(5)
    path = tmp_path / "bad.sqlite"
    for number in range(12):
        data = bytearray(whole)
        for _ in range(1 << chance.randrange(8)):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        path.write_bytes(data)
        report = tmp_path / f"{number}.warplens"
        failed = ""
        try:
            import_file(path, report)
        except WarplensError as error:
            failed = str(error)
        assert "bad.sqlite" in failed if failed else open_report(report).tables["processes"] >= 0
        assert report.exists() == (not failed)


def test_times_that_cannot_be_are_left_out_and_counted(tmp_path: Path) -> None:
    export = Export()
    kernel(export, "good", 100, 200, 1)
    for start, end in ((1 << 62, (1 << 62) + 5), (-(1 << 63), 7), (5, (1 << 63) - 1)):
        kernel(export, "bad", start, end, 1)
        call(export, "bad", start, end, 1)
        nvtx(export, PUSH_POP, start, end, text="bad")
    work("KERNEL", export, None, 5, 1, demangledName=0, shortName=0)  # type: ignore[arg-type]
    kernel(export, "backwards", 300, 250, 2)
    report = imported(export.write(tmp_path / "x.sqlite"))
    assert [(row["name"], row["start"], row["end"]) for row in report.table("kernels").to_pylist()] == [
        ("good", 100, 200),
        ("backwards", 300, 300),
    ]
    assert (report.tables["cuda_api"], report.tables["nvtx_ranges"]) == (0, 0)
    assert (report.origin, report.end) == (0, 300)
    assert said(report) == {
        "rows of CUPTI_ACTIVITY_KIND_KERNEL without a time that can be were left out": 4,
        "rows of CUPTI_ACTIVITY_KIND_RUNTIME without a time that can be were left out": 3,
        "rows of NVTX_EVENTS without a time that can be were left out": 3,
        "rows of CUPTI_ACTIVITY_KIND_KERNEL that end before they start count as instants": 1,
    }


@pytest.mark.slow
def test_values_of_any_type_fit_in_somehow(tmp_path: Path) -> None:
    path = tell(Export()).write(tmp_path / "x.sqlite")
    for column in (
        "deviceId",
        "streamId",
        "gridX",
        "correlationId",
        "globalPid",
        "shortName",
        "registersPerThread",
        "launchType",
    ):
        for value in ("'text'", "x'ff00'", "1e300", "NULL", "9223372036854775807", "-1"):
            changed(
                path,
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 1",
                f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET {column} = {value} WHERE rowid = last_insert_rowid()",
            )
    changed(
        path,
        "UPDATE StringIds SET value = CAST(x'66ff6f' AS TEXT) WHERE value = 'gemm'",
        "UPDATE NVTX_EVENTS SET text = x'c328' WHERE text = 'step'",
        "UPDATE NVTX_EVENTS SET domainId = NULL, category = 'x', color = -1, doubleValue = 'nine' WHERE text = 'a'",
    )
    report = imported(path)
    assert report.tables["kernels"] == 3 + 8 * 6
    assert "f\ufffdo" in report.table("kernels").column("name").to_pylist()
    assert "\ufffd(" in report.table("nvtx_ranges").column("message").to_pylist()
    assert "[string 0]" in report.table("kernels").column("name").to_pylist()


@pytest.mark.slow
def test_values_of_any_type_in_what_cpus_did(tmp_path: Path) -> None:
    tables = (
        "OSRT_API",
        "OSRT_CALLCHAINS",
        "SAMPLING_CALLCHAINS",
        "COMPOSITE_EVENTS",
        "SCHED_EVENTS",
        "MPI_P2P_EVENTS",
        "SYSCALL",
    )
    for number, value in enumerate(("'text'", "x'ff00'", "1e300", "NULL", "9223372036854775807", "-1")):
        path = cpu_story.tell(tell(Export())).write(tmp_path / f"{number}.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            columns = [
                (table, row[1])
                for table in tables
                for row in connection.execute(f'PRAGMA table_info("{table}")')
            ]
        # one value in each row and column in turn
        changed(
            path,
            *(
                f'UPDATE "{t}" SET "{c}" = {value} WHERE rowid % 5 = {place % 5}'
                for place, (t, c) in enumerate(columns)
            ),
        )
        report = imported(path)
        assert report.tables["frames"] > 0
        assert report.tables["kernels"] == 3


def test_views_and_virtual_tables_are_not_run(tmp_path: Path) -> None:
    path = Export().write(tmp_path / "x.sqlite")
    endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS "end", i AS globalTid FROM n'
    changed(
        path, f"CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS {endless}", f"CREATE VIEW PROCESSES AS {endless}"
    )
    assert imported(path).tables["cuda_api"] == 0


def test_names_of_tables_and_columns_with_quotes(tmp_path: Path) -> None:
    path = Export().write(tmp_path / "x.sqlite")
    changed(path, """CREATE TABLE "a""b'; DROP" ("c""d" TEXT)""", """INSERT INTO "a""b'; DROP" VALUES (1)""")
    report = imported(path)
    assert report.diagnostics.column("message").to_pylist() == [
        """the rows of the table a"b'; DROP have no place in a report"""
    ]


def test_a_file_that_somebody_still_writes(tmp_path: Path) -> None:
    path = tmp_path / "x ü%20?.sqlite"
    export = Export()
    call(export, "cudaFree_v3020", 1, 2, 1)
    export.write(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        )
        connection.commit()  # into the -wal file beside it
        assert imported(path).tables["cuda_api"] == 2


def test_an_unreadable_or_unwritable_file_is_named(tmp_path: Path) -> None:
    path = Export().write(tmp_path / "x.sqlite")
    with pytest.raises(ReportError, match=r"cannot read .*none\.sqlite"):
        import_file(tmp_path / "none.sqlite", tmp_path / "y.warplens")
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match=r"cannot write .*file/y\.warplens"):
        import_file(path, tmp_path / "file" / "y.warplens")


def test_threads_that_only_ended_a_range(tmp_path: Path) -> None:
    export = Export()
    nvtx(export, 60, 1, 5, text="handed over", endGlobalTid=global_id(300, 301))
    nvtx(export, MARK, 2, tid=(0, 0))
    report = imported(export.write(tmp_path / "x.sqlite"))
    assert report.tables["threads"] == 3
    assert report.sql(
        "SELECT tid FROM nvtx_ranges JOIN threads ON end_thread = threads.thread"
    ).to_pylist() == [{"tid": 301}]
