"""Refuses tables that are small on disk and would fill the memory.

Looks up the unpacked sizes in a file before reading it.

Of files that are small, so that looking costs nothing, the pages are held to that, too: a reader makes room for what a page says.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.errors import ReportError
from warplens.model.table import Table
from warplens.storage import pages
from warplens.storage.available import total
from warplens.storage.manifest import PROCESSES_PER_PART

# A name has at most 32 KiB, a definition or payload 1 MiB, an argument list 2 MiB, which quoting may make longer.
LONGEST = 16 << 20  # bytes of one value
# Real tables shrink to a twentieth; of names that are alike, to a two hundredth. What shrinks to less than a five hundredth was made to.
_SHRINKS = 500
_EVENTS = 256 << 20  # bytes up to which that does not matter: of tables that are read by row groups,
_ROWS = 32 << 20  # of tables that are read row by row,
_TEXT = 64 << 20  # and of their texts
_SHARE = 0.5  # of the memory that there is: what is read at once may take that much
_LOOKED = 16 << 20  # bytes of a file whose pages are looked at
_WIDTHS = {"INT32": 4, "INT64": 8, "DOUBLE": 8, "BOOLEAN": 1, "BYTE_ARRAY": 4}


def check(table: Table, file: Path, metadata: pq.FileMetaData) -> None:
    """Raise ReportError for a table file that no recording can have made, by its declared sizes."""
    texts = frozenset(column.name for column in table.columns if column.type in ("string", "dict", "binary"))
    _check(file, metadata, texts, little=_EVENTS if table.happens else _ROWS)


def check_foreign(file: Path, metadata: pq.FileMetaData) -> None:
    """Raise ReportError for another tool's Parquet file that would fill the memory, by its declared sizes."""
    _check(file, metadata, frozenset(), little=_EVENTS)


def _check_pages(file: Path, metadata: pq.FileMetaData) -> None:
    """Raise ReportError if the pages of a column unpack to more than the file says."""
    if file.stat().st_size > _LOOKED:
        return
    data = memoryview(file.read_bytes())
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            offsets = (column.dictionary_page_offset, column.data_page_offset)
            begin = min((offset for offset in offsets if offset), default=0)
            try:
                size = sum(pages.unpacked(data, begin, begin + column.total_compressed_size))
            except pages.Damaged as error:
                raise ReportError(f"cannot read {file}: {error}") from error
            if size > column.total_uncompressed_size:
                told = f"{column.path_in_schema} unpacks to {size:,} bytes, not {column.total_uncompressed_size:,} as it says"
                raise ReportError(f"{file} differs from the file that was written: {told}.")


def _check(file: Path, metadata: pq.FileMetaData, texts: frozenset[str], little: int) -> None:
    width, names = _layout(metadata)
    unpacked = packed = unpacked_text = packed_text = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        at_once = max(group.total_byte_size, group.num_rows * width)
        if at_once > _most():
            raise _too_large(file, at_once)
        unpacked += at_once
        for place, name in names.items():
            column = group.column(place)
            packed += column.total_compressed_size
            if name in texts:
                size = column.total_uncompressed_size
                if size > (column.num_values + 1) * (LONGEST + 8):
                    told = f"a value of {name} that has {size >> 20:,} MiB, of at most {LONGEST >> 20}"
                    raise ReportError(f"{file} has {told}: it was not written by a recording.")
                unpacked_text, packed_text = unpacked_text + size, packed_text + column.total_compressed_size
    for size, small, enough in ((unpacked, packed, little), (unpacked_text, packed_text, _TEXT)):
        if size > enough and size > _SHRINKS * small:
            told = f"{metadata.num_rows:,} rows in {small:,} bytes, which unpack to {size >> 20:,} MiB"
            raise ReportError(f"{file} has {told}: no recording has that, and it would fill the memory.")
    _check_pages(file, metadata)


def check_processes(file: Path, rows: int, blocks: int) -> None:
    """Raise ReportError for more processes than have keys.

    `blocks`: number of claimed part numbers in the report.
    """
    most = max(blocks, 1) * PROCESSES_PER_PART
    if rows > most:
        raise ReportError(
            f"{file} has {rows:,} processes, and the report has keys for {most:,}: it was not written by a recording."
        )


def check_whole(file: Path, metadata: pq.FileMetaData, columns: Iterable[str]) -> None:
    """Raise ReportError if columns of a table that is read whole take more than half of the free memory."""
    wanted, width = frozenset(columns), 0
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.path in wanted:
            width += _WIDTHS.get(column.physical_type, 8)
    size = metadata.num_rows * width
    if size > _most():
        raise _too_large(file, size)


def expanding(metadata: pq.FileMetaData, columns: Iterable[str]) -> list[str]:
    """Return the texts of a file that may be much larger than declared.

    They are dictionaries of long values that many rows share.
    """
    wanted, names = frozenset(columns), []
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.physical_type == "BYTE_ARRAY" and column.path in wanted:
            sizes = [
                metadata.row_group(number).column(place).total_uncompressed_size
                for number in range(metadata.num_row_groups)
            ]
            if metadata.num_rows * max(sizes, default=0) > _most():
                names.append(column.path)
    return names


def check_expanded(file: Path, rows: pa.Table, names: Iterable[str]) -> None:
    """Raise ReportError if the texts of columns, still dictionaries, would not fit into the memory."""
    import pyarrow.compute as pc  # 30 ms that the end of a short run need not pay

    for name in names:
        size = 0
        for chunk in rows.column(name).chunks:
            lengths = pc.binary_length(chunk.dictionary)
            size += pc.sum(pc.take(pc.cast(lengths, pa.int64()), chunk.indices)).as_py() or 0
        if size > _most():
            raise _too_large(file, size)


@cache
def _most() -> int:
    return int(_SHARE * total())


def _too_large(file: Path, size: int) -> ReportError:
    return ReportError(
        f"{file} unpacks to {size >> 20:,} MiB, more than half of the memory that there is ({int(_most() / _SHARE) >> 20:,} MiB)."
    )


def _layout(metadata: pq.FileMetaData) -> tuple[int, dict[int, str]]:
    """Return the least bytes of a row in memory, and the columns."""
    columns = {place: metadata.schema.column(place) for place in range(metadata.num_columns)}
    width = sum(_WIDTHS.get(column.physical_type, 8) for column in columns.values())
    return width, {place: column.path for place, column in columns.items()}
