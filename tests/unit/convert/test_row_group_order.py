"""Row groups of a Parquet file in another order: readers see it, whatever wrote the file, and nothing else changes."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warplens.errors import ReportError
from warplens.storage.row_group_order import reorder


def written(path: Path, groups: int) -> list[list[int]]:
    """Write a file; return the numbers in each of its row groups."""
    numbers = [[100 * group + place for place in range(group % 5 + 1)] for group in range(groups)]
    schema = pa.schema(
        [("id", pa.int64()), ("text", pa.dictionary(pa.int32(), pa.string())), ("part", pa.list_(pa.bool_()))]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for some in numbers:
            texts = pa.array([str(number) for number in some]).dictionary_encode()
            writer.write_table(
                pa.table([pa.array(some), texts, pa.array([[True, False]] * len(some))], schema=schema)
            )
    return numbers


@pytest.mark.parametrize("groups", [1, 2, 70, 200])
def test_readers_see_the_new_order(tmp_path: Path, groups: int) -> None:
    path = tmp_path / "x.parquet"
    numbers = written(path, groups)
    order = list(range(groups))
    random.Random(groups).shuffle(order)
    size = path.stat().st_size
    with path.open("r+b") as file:
        reorder(file, order)
    wanted = [number for group in order for number in numbers[group]]
    assert path.stat().st_size == size
    rows = pq.read_table(path)
    assert rows.column("id").to_pylist() == wanted
    assert rows.column("text").to_pylist() == [str(number) for number in wanted]
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(place).column(0).statistics.min for place in range(groups)] == [
        numbers[group][0] for group in order
    ]
    found = duckdb.execute("SELECT id FROM read_parquet(?)", [str(path)]).fetchall()
    assert [row[0] for row in found] == wanted


def test_another_file_stays_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    written(path, 3)
    with path.open("r+b") as file, pytest.raises(ReportError, match="3 row groups, not 2"):
        reorder(file, [1, 0])
    path.write_bytes(data := b"PAR1 and something else")
    with path.open("r+b") as file, pytest.raises(ReportError, match="does not end like a Parquet file"):
        reorder(file, [0])
    assert path.read_bytes() == data
