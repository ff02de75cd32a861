"""The pages of a Parquet file are read as their writers meant them, and what is none is an error."""

from __future__ import annotations

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warplens.storage import pages

ROWS = 50_000
TABLE = pa.table(
    {
        "number": np.arange(ROWS),
        "text": [f"name {number % 999}" for number in range(ROWS)],
        "gap": [None if number % 3 else float(number) for number in range(ROWS)],
        "flag": [number % 2 == 0 for number in range(ROWS)],
        "list": [[number] * (number % 4) for number in range(ROWS)],
    }
)


def written(**options: Any) -> tuple[bytes, pq.FileMetaData]:
    file = io.BytesIO()
    pq.write_table(TABLE, file, **options)
    return file.getvalue(), pq.read_metadata(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "zstd", "snappy"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"write_page_checksum": True},
        {"write_statistics": False},
        {"use_dictionary": False},
        {"write_page_index": True},
    ],
)
def test_pages_add_up_to_what_the_file_says(version: str, compression: str, more: dict[str, object]) -> None:
    data, metadata = written(
        data_page_version=version,
        compression=compression,
        data_page_size=20_000,
        row_group_size=20_000,
        **more,
    )
    most = 0
    for number in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(number).column(place)
            begin = min(
                offset for offset in (column.dictionary_page_offset, column.data_page_offset) if offset
            )
            found = list(pages.unpacked(memoryview(data), begin, begin + column.total_compressed_size))
            told = column.total_uncompressed_size
            assert told - 300 * len(found) < sum(found) < told  # the headers are in it, too
            most = max(most, len(found))
    assert most > 3


def test_bytes_that_are_no_page_header_are_refused() -> None:
    data, metadata = written(compression="none")
    column = metadata.row_group(0).column(1)
    begin, size = column.dictionary_page_offset, column.total_compressed_size
    chance = random.Random(1)
    for _ in range(3_000):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 5))):
            changed[begin + chance.randrange(40)] = chance.randrange(256)
        try:
            sum(pages.unpacked(memoryview(bytes(changed)), begin, begin + size))
        except pages.Damaged:
            continue
    for piece in (b"", b"\x15", b"\x15" * 9, b"\xff" * 30, b"\x1c" * 30, b"\x15\x04\x15\x01\x15\x01\x00"):
        with pytest.raises(pages.Damaged):
            list(pages.unpacked(memoryview(piece), 0, 1))
