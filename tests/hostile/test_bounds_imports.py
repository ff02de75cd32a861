"""Files of other tools that are small and unpack to gigabytes are refused in little memory; what is packed as it should be is not."""

from __future__ import annotations

import gzip
import sqlite3
import zlib
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hostile.readers import templates
from tests.hostile.test_bounds_tables import MIB, peak
from tests.support.reports.nsys_export import Export
from tests.support.thorough import alike
from tests.unit.importers.story import tell
from warplens.errors import ReportError
from warplens.importers.importing import import_file
from warplens.importers.unpacking import GZIP, Unpacking

MOST = 1_000 * MIB
TRACE = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "'


def packed(pieces: Iterable[bytes], kind: int = 31) -> bytes:
    made = zlib.compressobj(9, wbits=kind)
    return b"".join([*map(made.compress, pieces), made.flush()])


def field(number: int, data: bytes) -> bytes:
    """A field of protobuf with bytes in it."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


PACKETS = field(1, b"\x40\x05") * 262_144
BOMBS: dict[str, Callable[[], bytes]] = {
    "spaces.json.gz": lambda: packed([TRACE[: TRACE.index(b"[") + 1], *[b" " * MIB] * 600, b"]}"]),
    "name.json.gz": lambda: packed([TRACE, *[b"a" * MIB] * 600, b'"}]}']),
    "all.perfetto-trace": lambda: packed([PACKETS] * 600),
    "packet.perfetto-trace": lambda: (
        field(1, b"\x40\x05") * 10 + field(1, field(50, packed([PACKETS] * 600, 15)))
    ),
}


@pytest.mark.parametrize("name", alike(BOMBS, "name.json.gz", "packet.perfetto-trace"))
def test_a_file_that_unpacks_a_thousandfold_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    assert path.stat().st_size < 2 * MIB
    done, most = peak("import", str(path))
    assert done.returncode == 1
    assert "unpack to more than" in done.stderr
    assert "would fill the memory" in done.stderr
    assert most < MOST, most / MIB
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "peak"] == [name]


@pytest.mark.parametrize("size", [0, 1, 70_000, 3 * MIB, 30 * MIB])
def test_an_ordinary_packed_file_unpacks_completely(size: int) -> None:
    # As far as text is packed, and at sizes where what unpacks it is full and has more.
    text = (b"0123456789abcdef" * 4 + bytes(64)) * (size // 128 + 1)
    text = text[:size] if size < 10 * MIB else (np.arange(size // 8).tobytes())[:size]
    data = gzip.compress(text, 1)
    unpacking = Unpacking(Path("x"))
    unpack = unpacking.begin(GZIP)
    found = b"".join(
        piece
        for begin in range(0, len(data), 16_384)
        for piece in unpacking.pieces(unpack, data[begin : begin + 16_384])
    )
    assert unpack.eof
    assert found == text


def test_members_of_gzip_with_zeros_behind(tmp_path: Path) -> None:
    templates.make(tmp_path)
    whole = (tmp_path / "run.perfetto-trace").read_bytes()
    half = whole.index(b"\n", len(whole) // 2)
    path = tmp_path / "packed.perfetto-trace"
    path.write_bytes(gzip.compress(whole[:half]) + gzip.compress(whole[half:]) + bytes(512))
    rows = []
    for source in (tmp_path / "run.perfetto-trace", path):
        made = import_file(source, tmp_path / f"{source.name}.warplens")
        rows.append({name: entry["rows"] for name, entry in made[0].tables.items()})
    assert rows[0] == rows[1]
    path.write_bytes(gzip.compress(whole)[:-20])
    with pytest.raises(ReportError, match="is broken"):
        import_file(path, tmp_path / "cut.warplens")


def _folder(tmp_path: Path) -> Path:
    tell(Export()).write(tmp_path / "run.sqlite")
    templates.split(tmp_path / "run.sqlite", tmp_path / "run_pqtdir")
    return tmp_path / "run_pqtdir"


def test_a_table_of_a_folder_whose_rows_are_all_alike(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    file = folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    one = pq.read_table(file).slice(0, 1)
    rows = 3_000_000
    with pq.ParquetWriter(file, one.schema, compression="zstd") as writer:
        alike = pa.concat_tables([one] * 1_000).combine_chunks()
        whole = pa.concat_tables([alike] * 1_000).combine_chunks()
        for _ in range(rows // 1_000_000):
            writer.write_table(whole)
    assert file.stat().st_size < 5 * MIB
    done, most = peak("import", str(folder))
    assert done.returncode == 1
    assert "would fill the memory" in done.stderr
    assert most < MOST, most / MIB


def test_a_long_text_that_rows_of_a_folder_have_in_common(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    file = folder / "StringIds.parquet"
    rows = 100_000
    value = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * (2 * MIB)])
    pq.write_table(
        pa.table({"id": np.arange(rows), "value": value}),
        file,
        compression="zstd",
        dictionary_pagesize_limit=4 * MIB,
    )
    done, most = peak("import", str(folder))
    assert done.returncode == 1
    assert "more than half of the memory" in done.stderr
    assert most < MOST, most / MIB


def test_a_view_that_has_no_end_is_not_read(tmp_path: Path) -> None:
    path = tell(Export()).write(tmp_path / "run.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET")
        connection.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS "
            "WITH RECURSIVE t(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM t) SELECT start FROM t"
        )
        connection.execute("CREATE TABLE x (a, b AS (length(hex(zeroblob(a)))))")
        connection.commit()
    (made,) = import_file(path, tmp_path / "out.warplens")
    assert made.rows("memsets") == 0
    assert made.rows("kernels") > 0
