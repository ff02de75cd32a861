"""The connection factory: nothing outside the report, nothing loaded, nothing changeable; and the untrusted caller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warplens.errors import QueryError
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    folder = tmp_path_factory.mktemp("connection")
    timeline(folder / "r.warplens", "main |[step ]")
    (folder / "secret.csv").write_text("token\nabc\n")
    with open_report(folder / "r.warplens") as opened:
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{outside}/secret.csv')",
        "SELECT * FROM read_text('{outside}/secret.csv')",
        "SELECT * FROM read_blob('{outside}/*')",
        "SELECT * FROM glob('{outside}/*')",
        "SELECT * FROM '{outside}/secret.csv'",
        "SELECT * FROM read_text('{inside}/../manifest.d/part-0')",
        "SELECT * FROM read_text('/proc/self/environ')",
        "COPY nvtx_ranges TO '{outside}/out.csv'",
        "ATTACH '{outside}/x.db'",
        "EXPORT DATABASE '{outside}/x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "SET threads = 64",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET memory_limit",
        "PRAGMA enable_external_access",
        "SELECT * FROM report",
    ],
)
def test_sql_reads_no_file_beyond_the_report(report: Report, text: str) -> None:
    outside = report.path.parent
    filled = text.format(outside=outside, inside=report.path / "tables")
    before = sorted(outside.iterdir())
    with pytest.raises(QueryError):
        report.sql(filled)
    assert sorted(outside.iterdir()) == before


def test_limits_are_set(report: Report) -> None:
    row = report.sql(
        "SELECT current_setting('memory_limit') AS memory, current_setting('threads') AS threads"
    ).to_pylist()[0]
    assert row["threads"] >= 1
    assert "GiB" in row["memory"] or "MiB" in row["memory"]


def test_odd_report_names(tmp_path: Path) -> None:
    path = tmp_path / "it's [a] *.warplens"
    timeline(path, "main |[step ]")
    assert open_report(path).sql("SELECT count(*) AS n FROM nvtx_ranges").to_pylist() == [{"n": 1}]


def test_a_report_reached_through_a_link(tmp_path: Path, report: Report) -> None:
    (tmp_path / "link.warplens").symlink_to(report.path)
    assert open_report(tmp_path / "link.warplens").sql(
        "SELECT count(*) AS n FROM nvtx_ranges"
    ).to_pylist() == [{"n": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT message FROM nvtx_ranges",
        "select count(*) from NVTX_RANGES where start > 5 group by process having count(*) > 0",
        "WITH a AS (SELECT * FROM nvtx_ranges) SELECT * FROM a JOIN threads USING (thread)",
        "SELECT * FROM (SELECT 1) AS sub, nvtx_marks",
        "VALUES (1), (2)",
        "FROM nvtx_ranges",
        "SELECT * FROM range(5), unnest([1, 2])",
        "SELECT thread FROM threads UNION ALL SELECT process FROM processes",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
        "SELECT * FROM nvtx_ranges WHERE thread IN (SELECT thread FROM threads);",
        "SHOW TABLES",
        "SHOW nvtx_ranges",
        "DESCRIBE nvtx_ranges",
        "DESCRIBE SELECT message FROM nvtx_ranges",
        "SUMMARIZE nvtx_ranges",
        "SUMMARIZE SELECT start FROM nvtx_ranges",
    ],
)
def test_an_untrusted_caller_may_select(report: Report, text: str) -> None:
    report.sql(text, untrusted=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1; SELECT 2",
        "COPY nvtx_ranges TO 'x'",
        "COPY (SELECT 1) TO '/dev/stdout'",
        "ATTACH 'x'",
        "INSTALL httpfs",
        "LOAD json",
        "PRAGMA version",
        "SET threads = 1",
        "RESET threads",
        "CALL pragma_version()",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW nvtx_ranges",
        "INSERT INTO nvtx_ranges VALUES (1)",
        "EXPLAIN ANALYZE SELECT 1",
        "EXECUTE x",
        "PREPARE x AS SELECT 1",
        "USE memory",
        "SHOW DATABASES",
        "SHOW VARIABLES",
        "SHOW report",
        "SHOW TABLES FROM main",
        "DESCRIBE '{file}'",
        "DESCRIBE report",
        "DESCRIBE SELECT * FROM read_text('{file}')",
        "SUMMARIZE SELECT * FROM read_text('{file}')",
        "SELECT * FROM (DESCRIBE '{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_csv_auto('{file}')",
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM parquet_metadata('{file}')",
        "SELECT * FROM parquet_schema('{file}')",
        "SELECT * FROM read_json('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM sniff_csv('{file}')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('nvtx_ranges')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pragma_version()",
        "SELECT * FROM information_schema.schemata",
        "SELECT * FROM x.information_schema.tables",
        "SELECT * FROM duckdb_tables",
        "SELECT * FROM main.nvtx_ranges",
        "SELECT (SELECT content FROM read_text('{file}'))",
        "WITH a AS (SELECT * FROM read_text('{file}')) SELECT * FROM a",
        "SELECT 1 UNION SELECT content FROM read_text('{file}')",
        "SELECT 1 WHERE EXISTS (FROM read_text('{file}'))",
        "SELECT * FROM nvtx_ranges ORDER BY (SELECT content FROM read_text('{file}'))",
        "SELECT * FROM nvtx_ranges, LATERAL (SELECT * FROM glob('{folder}/*'))",
        "PIVOT nvtx_ranges ON message USING count(*)",
        "SELECT * FROM report",
        "SELECT getenv('HOME')",
        "nonsense",
    ],
)
def test_an_untrusted_caller_may_not(report: Report, text: str) -> None:
    file = report.path.resolve() / report.manifests[0].tables["threads"]["file"]
    with pytest.raises(QueryError):
        report.sql(text.format(file=file, folder=file.parent), untrusted=True)
