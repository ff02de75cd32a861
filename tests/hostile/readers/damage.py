"""What is done to files and values: by chance, but the same each time for the same chance."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NUMBERS = (
    0,
    1,
    -1,
    7,
    255,
    1 << 15,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 40,
    (1 << 62) - 1,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
)
TEXTS = (
    "",
    "x",
    "\0",
    "e\x1b[31m\nvil",
    "../../x",
    "/",
    "a" * 5_000,
    "é" * 300,
    "{",
    "-1",
    "1e999",
    "%s%n",
    "=1+1",
    "<img src=x>",
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 1.5, -0.0, 1e308, float("inf"), float("nan"), 1 << 64, -(1 << 70), 10**40),
    *NUMBERS,
    *TEXTS,
    *("\ud800", [], [[]], {}, {"a": 1}, [None] * 50, ["\ud800", 3], {"x": {"x": {"x": []}}}),
)
_WORDS = tuple(
    number.to_bytes(size, "little", signed=True)
    for number in (0, 1, -1, 127, 1 << 14, 1 << 30)
    for size in (1, 2, 4, 8)
    if -(1 << (size * 8 - 1)) <= number < 1 << (size * 8 - 1)
)


def scrambled(data: bytes, chance: random.Random) -> bytes:
    """Change some bytes, cut some off, repeat some, or put others between them."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 30))):
        if not found:
            break
        ends = chance.random()
        place = chance.randrange(len(found))
        if ends < 0.4:
            place = chance.randrange(min(len(found), 400))
        elif ends < 0.6:
            place = len(found) - 1 - chance.randrange(min(len(found), 400))
        word = chance.choice((bytes([chance.randrange(256)]), chance.choice(_WORDS)))
        found[place : place + len(word)] = word
    kind = chance.random()
    if kind < 0.15:
        del found[chance.randrange(len(found) + 1) :]
    elif kind < 0.25:
        found += found[: chance.randrange(1, 5_000)]
    elif kind < 0.35:
        begin = chance.randrange(len(found) + 1)
        del found[begin : begin + chance.randrange(1, 200)]
    elif kind < 0.4:
        begin = chance.randrange(len(found) + 1)
        found[begin:begin] = found[begin : begin + chance.randrange(1, 200)] * chance.choice((1, 100))
    return bytes(found)


def bytes_of(path: Path, chance: random.Random) -> None:
    """Damage the bytes of a file."""
    path.write_bytes(scrambled(path.read_bytes(), chance))


def put_somewhere(data: Any, value: Any, chance: random.Random) -> None:
    """Put a value somewhere into a tree of JSON."""
    while data:
        key = chance.choice(list(data) if isinstance(data, dict) else range(len(data)))
        if isinstance(data[key], (dict, list)) and data[key] and chance.random() < 0.7:
            data = data[key]
            continue
        if chance.random() < 0.1:
            del data[key]
        else:
            data[key] = value
        return


def json_of(path: Path, chance: random.Random) -> None:
    """Put odd values into a file of JSON."""
    data = json.loads(path.read_bytes())
    for _ in range(chance.choice((1, 1, 3))):
        put_somewhere(data, chance.choice(ODD), chance)
    path.write_text(json.dumps(data))


def kind_of(path: Path, chance: random.Random, outside: Path) -> None:
    """Replace a file or folder by something that is none: a link, a pipe, a folder, a device, or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    made: list[Callable[[], Any]] = [
        lambda: None,
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to(path),
        lambda: path.symlink_to(chance.choice(("/dev/zero", "/proc/self/mem", "."))),
        lambda: path.symlink_to(outside),
        lambda: path.symlink_to(chance.choice(sorted(outside.rglob("*")))),
    ]
    chance.choice(made)()


def table_of(path: Path, chance: random.Random) -> int:
    """Write a Parquet file anew with odd rows; return how many it has then."""
    try:
        rows = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError):
        return 0
    for _ in range(chance.choice((1, 1, 2, 5))):
        rows = _changed(rows, chance)
    pq.write_table(
        rows,
        path,
        row_group_size=max(1, chance.choice((1, 3, 1 << 20))),
        compression=chance.choice(("zstd", "none")),
    )
    return int(rows.num_rows)


def _changed(rows: pa.Table, chance: random.Random) -> pa.Table:
    names = rows.column_names
    kind = chance.random()
    if not names or not rows.num_rows or kind < 0.05:
        return rows.slice(0, 0)
    name = chance.choice(names)
    place = names.index(name)
    field = rows.schema.field(place)
    if kind < 0.1:
        return rows.drop_columns([name])
    if kind < 0.15:
        return pa.concat_tables([rows] * chance.choice((2, 50)))
    if kind < 0.2:
        return rows.take(pa.array([chance.randrange(rows.num_rows) for _ in range(rows.num_rows)]))
    if kind < 0.25:
        return rows.set_column(place, pa.field(name, pa.string()), pa.array(["x"] * rows.num_rows))
    return rows.set_column(place, field, _values(rows.column(place), field, chance))


def _values(old: pa.ChunkedArray, field: pa.Field, chance: random.Random) -> pa.Array:
    """Return other values of a column's type for some rows, or for all."""
    plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    values = old.to_pylist()
    share = chance.choice((0.1, 0.5, 1.0))
    for row in range(len(values)):
        if chance.random() < share:
            values[row] = _value(plain, chance, field.nullable)
    try:
        array = pa.array(values, plain)
    except (pa.ArrowException, OverflowError, ValueError):
        return old
    return array.dictionary_encode().cast(field.type) if pa.types.is_dictionary(field.type) else array


def _value(kind: pa.DataType, chance: random.Random, nullable: bool) -> Any:
    if nullable and chance.random() < 0.3:
        return None
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_integer(kind):
        low, high = (
            (0, 1 << kind.bit_width)
            if not pa.types.is_signed_integer(kind)
            else (-(1 << (kind.bit_width - 1)), 1 << (kind.bit_width - 1))
        )
        return min(max(chance.choice((*NUMBERS, chance.randrange(-50, 2_000))), low), high - 1)
    if pa.types.is_floating(kind):
        return chance.choice((0.0, -1.5, 1e308, float("inf"), float("nan"), 5e-324))
    text = chance.choice((*TEXTS, "main", "step", "range", "int64", "absolute", "PushPop"))
    return text.encode() if pa.types.is_binary(kind) else text


def sqlite_of(path: Path, chance: random.Random) -> None:
    """Change rows, columns and tables of a database, as somebody with a pencil would."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        for _ in range(chance.choice((1, 2, 6))):
            table = chance.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            if not columns:
                continue
            column = chance.choice(columns)
            value = chance.choice([*TEXTS, *NUMBERS, None, 1.5, b"\xff\0", float("inf")])
            where = chance.choice(("", " WHERE rowid = 1", " WHERE rowid % 2"))
            statement, *given = chance.choice(
                (
                    (f'UPDATE "{table}" SET "{column}" = ?{where}', value),
                    (f'UPDATE "{table}" SET "{column}" = ?{where}', value),
                    (f'UPDATE "{table}" SET "{column}" = ?{where}', value),
                    (f'DELETE FROM "{table}"{where}',),
                    (f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other{chance.randrange(9)}"',),
                    (f'INSERT INTO "{table}" SELECT * FROM "{table}"',),
                    (f'DROP TABLE IF EXISTS "{table}"',),
                    (f'CREATE TABLE IF NOT EXISTS "{chance.choice(TEXTS[1:4])}" (x)',),
                )
            )
            try:
                connection.execute(statement, given)
            except (sqlite3.Error, ValueError):
                continue
        connection.commit()
