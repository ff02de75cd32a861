"""Parts claim numbers, tables are built to the model's types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from warplens.model.tables import TABLES
from warplens.report import open as open_report
from warplens.storage import schema
from warplens.storage.manifest import PROCESSES_PER_PART
from warplens.storage.writer import Facts, PartWriter, write_part


def test_every_column_of_the_model_has_an_arrow_type() -> None:
    for table in TABLES.values():
        found = schema.schema(table)
        assert found.names == [column.name for column in table.columns]
        for column in table.columns:
            item = found.field(column.name)
            assert item.nullable == column.nullable
            assert item.metadata[b"description"].decode() == column.text


def test_rows_and_columns_build_the_same_table() -> None:
    rows: list[dict[str, object]] = [
        {"thread": 1, "process": 0, "tid": 5, "name": None, "start": 7},
        {"thread": 2, "process": 0, "tid": 6, "start": 8},
    ]
    columns = {"thread": [1, 2], "process": [0, 0], "tid": [5, 6], "start": [7, 8]}
    assert schema.build("threads", rows).equals(schema.build("threads", columns))
    assert schema.build("threads", []).equals(schema.empty("threads"))
    with pytest.raises(KeyError, match="tid"):
        schema.build("threads", {"thread": [1], "process": [0], "start": [1]})
    with pytest.raises(pa.ArrowInvalid):
        schema.build("threads", {**columns, "tid": ["x", "y"]})


def test_a_part_keeps_its_number_when_it_is_written_again(tmp_path: Path) -> None:
    assert [PartWriter(tmp_path, name, "h").part for name in ("a", "b", "a", "c", "b")] == [0, 1, 0, 2, 1]


def test_very_many_processes_take_more_numbers(tmp_path: Path) -> None:
    first = PartWriter(tmp_path, "a", "h")
    assert PartWriter(tmp_path, "b", "h").part == 1
    assert first.key(PROCESSES_PER_PART - 1) == PROCESSES_PER_PART - 1
    assert first.key(PROCESSES_PER_PART + 5) == 2 * PROCESSES_PER_PART + 5
    assert PartWriter(tmp_path, "c", "h").part == 3


def test_an_abandoned_part_leaves_nothing(tmp_path: Path) -> None:
    with PartWriter(tmp_path, "a", "h") as part:
        part.write("threads", [{"thread": 0, "process": 0, "tid": 1, "start": 0}])
        part.abandon()
    with PartWriter(tmp_path, "a", "h") as part, pytest.raises(KeyError):
        part.write("no such table", [])
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "part-0"]


def test_hosts_with_odd_names(tmp_path: Path) -> None:
    manifest = write_part(tmp_path / "r", Facts("x", "a/b", "boot"), {})
    assert manifest.host == "a/b"
    assert manifest.tables["threads"]["file"] == "tables/threads/a_b-0.parquet"
    assert open_report(tmp_path / "r").tables["threads"] == 0
