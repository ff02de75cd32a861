"""What damaged reports did to commands and to the page before `make torture ARGS=--readers` showed it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hostile.readers.asking import command
from tests.support.page.viewing import PICTURE, serving
from tests.support.reports.kineto_trace import op, write
from warplens.errors import ReportError
from warplens.importers.importing import import_file
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


@pytest.fixture
def report(tmp_path: Path) -> Path:
    timeline(tmp_path / "run.warplens", PICTURE)
    return tmp_path / "run.warplens"


def change(report: Path, table: str, how: Callable[[pa.Table], pa.Table]) -> None:
    """Write a table anew; it keeps its number of rows."""
    (file,) = (report / "tables" / table).glob("*.parquet")
    pq.write_table(how(pq.read_table(file)), file)


@pytest.mark.parametrize("form", ["perfetto", "chrome", "csv"])
def test_names_that_an_older_file_lacks(report: Path, form: str) -> None:
    change(report, "nvtx_counter_samples", lambda rows: rows.drop_columns(["no_value"]))
    assert command(["export", "-f", "-t", form, "-o", str(report.parent / "out"), str(report)]) is not None


@pytest.mark.parametrize("table", ["kernels", "memsets", "graphs", "nvtx_counter_samples", "osrt"])
def test_tables_whose_file_is_that_of_others(report: Path, table: str) -> None:
    (path,) = (report / "manifest.d").glob("*.json")
    manifest = json.loads(path.read_text())
    manifest["tables"][table] = manifest["tables"]["nvtx_ranges"]
    path.write_text(json.dumps(manifest))
    with serving(report) as client:
        answer = client.api("tracks", report=0)
        assert answer.status == 500
        assert f"of the table {table}" in answer.json["error"]
    with open_report(report) as opened:
        opened.table("nvtx_ranges")
        with pytest.raises(ReportError, match=f"lacks the column .* of the table {table}"):
            opened.table(table)


@pytest.mark.parametrize("table", ["thread_states", "samples", "osrt"])
def test_times_at_the_edges_of_what_there_is(report: Path, table: str) -> None:
    def earliest(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index("end")
        return rows.set_column(place, rows.schema.field(place), pa.array([-(1 << 63)] * rows.num_rows))

    change(report, table, earliest)
    command(["timeline", str(report)])


def test_an_import_of_a_pipe_or_a_device_does_not_wait(tmp_path: Path) -> None:
    names = ("run.sqlite", "trace.json", "x.collapsed")
    for name in names:
        os.mkfifo(tmp_path / name)
    for path in (*(tmp_path / name for name in names), Path("/dev/zero")):
        assert "is a pipe or a device, but the importer reads it more than once" in command(
            ["import", "-o", str(tmp_path / "out"), str(path)]
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.parametrize("number", [{}, [], None, True, -1, 1 << 40, "0", 1.5])
def test_a_device_whose_number_is_none(tmp_path: Path, number: object) -> None:
    path = write(
        tmp_path / "trace.json",
        [op("aten::mm", 1, 2)],
        deviceProperties=[{"id": number, "name": number}, {"id": 0, "name": "GPU"}, 5],
    )
    import_file(path, tmp_path / "out.warplens")
    with open_report(tmp_path / "out.warplens") as opened:
        assert opened.table("devices", ["device"]).column(0).to_pylist() == [0]
