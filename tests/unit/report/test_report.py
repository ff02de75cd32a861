"""The user's view of a report: tables, SQL, pandas."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from warplens.errors import MissingData, QueryError
from warplens.model.tables import TABLES
from warplens.report import Report
from warplens.report import open as open_report
from warplens.storage import schema
from warplens.testing.timeline import timeline

PICTURE = """
    main    |[step        ][step      ]  !save
    main    |  [load ]
    w@io    |     [read         ]
    p1/main |        {async   }
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    path = tmp_path_factory.mktemp("report") / "r.warplens"
    timeline(path, PICTURE, ranks={"p1": 1})
    with open_report(path) as opened:
        yield opened


def test_facts(report: Report) -> None:
    some = {
        "processes": 2,
        "threads": 3,
        "capture_windows": 1,
        "nvtx_ranges": 5,
        "nvtx_marks": 1,
        "targets": 1,
    }
    assert report.tables == dict.fromkeys(TABLES, 0) | some
    assert (report.origin, report.end) == (1_000_000_000, 1_000_028_000)
    assert report.name == "r"
    assert report.waiting == ()
    assert "5 NVTX ranges" in repr(report)


def test_every_table_has_the_models_types(report: Report) -> None:
    for name in TABLES:
        assert report.table(name).schema.equals(schema.schema(name)), name


def test_some_columns(report: Report) -> None:
    table = report.table("nvtx_ranges", ["message", "depth"])
    assert table.column_names == ["message", "depth"]
    assert table.to_pydict() == {
        "message": ["step", "load", "read", "step", "async"],
        "depth": [0, 1, 0, 0, 0],
    }


def test_missing_tables_and_columns_are_named(report: Report) -> None:
    with pytest.raises(MissingData, match="no table 'cuda_kernels'"):
        report.table("cuda_kernels")
    with pytest.raises(MissingData, match="no column 'x'"):
        report.table("threads", ["x"])


def test_sql(report: Report) -> None:
    found = report.sql("SELECT message, count(*) AS n FROM nvtx_ranges GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 2")
    assert found.to_pylist() == [{"message": "step", "n": 2}, {"message": "async", "n": 1}]
    assert report.sql("SELECT count(*) AS n FROM nvtx_ranges WHERE domain = ?", ["io"]).to_pylist() == [
        {"n": 1}
    ]
    assert report.sql("SELECT count(*) AS n FROM nvtx_ranges WHERE domain = $d", {"d": "io"}).to_pylist() == [
        {"n": 1}
    ]
    assert report.sql("SELECT rank FROM processes ORDER BY process").column(0).to_pylist() == [None, 1]
    assert isinstance(report.sql("CREATE TEMP TABLE t AS SELECT 1"), pa.Table)


def test_errors_of_sql(report: Report) -> None:
    with pytest.raises(QueryError, match="nope"):
        report.sql("SELECT * FROM nope")
    with pytest.raises(QueryError):
        report.sql("SELEC")


def test_an_unfinished_result_does_not_block_the_next_question(report: Report) -> None:
    rows = report.connection().execute("SELECT * FROM nvtx_ranges")
    assert report.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]
    assert len(rows.fetchall()) == 5


def test_a_closed_report_opens_again(report: Report) -> None:
    report.sql("SELECT 1")
    report.close()
    assert report.sql("SELECT count(*) AS n FROM threads").to_pylist() == [{"n": 3}]


@pytest.mark.require("pandas")
def test_to_pandas(report: Report) -> None:
    frame = report.to_pandas("nvtx_ranges")
    assert frame["message"].tolist() == ["step", "load", "read", "step", "async"]
    assert {
        name: str(frame.dtypes[name]) for name in ("id", "parent", "color", "payload_float", "unfinished")
    } == {
        "id": "int64",
        "parent": "Int64",
        "color": "UInt32",
        "payload_float": "float64",
        "unfinished": "bool",
    }
    assert frame["parent"].dropna().tolist() == [0]
    assert report.to_pandas("diagnostics").empty
