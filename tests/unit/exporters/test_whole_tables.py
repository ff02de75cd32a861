"""Any table of a report as one file: `arrow`, `parquet`, `csv`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warplens import catalog
from warplens.errors import UsageError
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


@pytest.fixture
def report(tmp_path: Path) -> Report:
    picture = "main |[a   ][b   ]\ngpu0.7 |(gemm )(HtoD )(gemm )\nmain:os |(read:/data/a )"
    timeline(
        tmp_path / "r.warplens",
        picture,
        payloads={"a": [{"x": 1}]},
        extra={"b": {"category": 'quote " , \n newline'}},
    )
    return open_report(tmp_path / "r.warplens")


def written(report: Report, kind: str, out: Path, **options: Any) -> Path:
    catalog.find("exporters.formats", kind).load().write(report, out, **options)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_every_table_is_as_in_the_report(kind: str, report: Report, tmp_path: Path) -> None:
    for table in report.tables:
        out = written(report, kind, tmp_path / table, table=table)
        found = (
            pa.ipc.open_file(pa.memory_map(str(out))).read_all() if kind == "arrow" else pq.read_table(out)
        )
        assert found.to_pylist() == report.table(table).to_pylist(), table
        assert found.schema.field(0).metadata[b"description"]


@pytest.mark.slow
def test_csv_has_names_and_values(report: Report, tmp_path: Path) -> None:
    with open(
        written(report, "csv", tmp_path / "out.csv", table="kernels"), newline="", encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], int(row["start"])) for row in rows] == [
        (row["name"], row["start"]) for row in report.table("kernels").to_pylist()
    ]
    with open(written(report, "csv", tmp_path / "out.csv"), newline="", encoding="utf-8") as file:
        assert [row["category"] for row in csv.DictReader(file)] == ["", 'quote " , \n newline']
    for table in report.tables:
        written(report, "csv", tmp_path / "out.csv", table=table)


def test_a_part_of_a_report_is_a_part_of_the_table(report: Report, tmp_path: Path) -> None:
    with report.between(report.origin, report.origin + 2_000) as part:
        assert (
            pq.read_table(written(part, "parquet", tmp_path / "out.parquet", table="kernels")).num_rows == 1
        )


def test_an_unknown_table_is_an_error_that_lists_those_that_there_are(report: Report, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no table 'kernel'; there are: .*kernels"):
        written(report, "csv", tmp_path / "out.csv", table="kernel")
