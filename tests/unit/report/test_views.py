"""The tables of a report in SQL: shown when they are asked for, and it never shows that they were not before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warplens.errors import QueryError
from warplens.model.tables import TABLES
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


@pytest.fixture
def report(tmp_path: Path) -> Iterator[Report]:
    timeline(tmp_path / "r.warplens", "main |[a ][b ] !m")
    with open_report(tmp_path / "r.warplens") as opened:
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        "SELECT message FROM nvtx_ranges",
        'select MESSAGE from "Nvtx_Ranges"',
        "FROM nvtx_ranges SELECT message",
    ],
)
def test_a_question_shows_the_tables_that_it_names(report: Report, text: str) -> None:
    assert report.sql(text).column(0).to_pylist() == ["a", "b"]
    assert report._shown == {"nvtx_ranges"}
    assert report.sql("SELECT count(*) FROM nvtx_marks, nvtx_ranges").column(0).to_pylist() == [2]
    assert report._shown == {"nvtx_ranges", "nvtx_marks"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "SHOW TABLES",
        "SELECT table_name FROM information_schema.tables",
        "SELECT view_name FROM duckdb_views() WHERE NOT internal",
        "SELECT name FROM sqlite_master",
        "SELECT table_name FROM (SHOW ALL TABLES) AS t(d, s, table_name, c, ct, tmp)",
    ],
)
def test_a_list_of_tables_has_all_tables(report: Report, text: str) -> None:
    report.sql("SELECT 1 FROM nvtx_ranges")
    column = report.sql(text)
    assert set(column.column(min(column.num_columns - 1, 0)).to_pylist()) >= set(TABLES)


@pytest.mark.slow
def test_a_name_that_is_put_together_is_found(report: Report) -> None:
    report.sql("SELECT 1 FROM nvtx_ranges")
    assert report.sql("SELECT count(*) FROM query_table('nvtx_' || 'marks')").column(0).to_pylist() == [1]


@pytest.mark.slow
def test_an_unknown_name_is_compared_with_all(report: Report) -> None:
    report.sql("SELECT 1 FROM nvtx_ranges")
    with pytest.raises(QueryError, match="nvtx_marks"):
        report.sql("SELECT * FROM nvtx_markz, nvtx_ranges")


@pytest.mark.slow
def test_views_of_ones_own_stay(report: Report) -> None:
    report.sql("CREATE VIEW mine AS SELECT message FROM nvtx_ranges")
    report.connection()
    assert report.sql("SELECT * FROM mine").column(0).to_pylist() == ["a", "b"]


@pytest.mark.slow
def test_a_closed_report_begins_anew(report: Report) -> None:
    report.sql("SELECT 1 FROM nvtx_ranges")
    report.close()
    assert report.sql("SELECT count(*) FROM nvtx_ranges").column(0).to_pylist() == [2]
