"""Tables as text for programs (csv, tsv, json).

Whole columns at a time, piece by piece, so that large tables stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA = "^[=+@\t\r-]"  # how what a spreadsheet computes begins
_ROWS = 1 << 16  # of a piece: what is in memory as text at once


def as_csv(table: pa.Table, *, width: int = 0, header: bool = True, computed: bool = True) -> Iterator[str]:
    """Comma-separated lines as in RFC 4180; numbers plain.

    Unless `computed`, no text is one that a spreadsheet would compute.
    """
    alone = table.num_columns == 1  # an empty line would be no row
    if header:
        names = table.column_names if computed else [_harmless(name) for name in table.column_names]
        yield from _joined([[_quoted(name) or '""'] for name in names], ",")

    def text(column: pa.Array, name: str) -> pa.Array:
        import pyarrow.compute as pc

        texts = _plain(column, name)
        if not computed and not _is_number(column.type):
            texts = _edit(texts, _FORMULA, _harmless)
        texts = _edit(texts, '[",\r\n]', _quoted)
        return pc.if_else(pc.equal(texts, ""), '""', texts) if alone else texts

    yield from _lines(table, text, ",")


def as_spreadsheet(table: pa.Table, *, width: int = 0, header: bool = True) -> Iterator[str]:
    """The same with an apostrophe before a text such as `=1+1`.

    So a name from a report is never a formula.
    """
    return as_csv(table, header=header, computed=False)


def as_tsv(table: pa.Table, *, width: int = 0, header: bool = True) -> Iterator[str]:
    """Tab-separated lines without quoting.

    Tabs, line ends and backslashes in text are written as backslash escapes.
    """
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    if header:
        yield "\t".join(name.translate(escapes) for name in table.column_names)
    yield from _lines(
        table,
        lambda column, name: _edit(
            _plain(column, name), "[\\\\\t\n\r]", lambda text: text.translate(escapes)
        ),
        "\t",
    )


def as_json(table: pa.Table, *, width: int = 0, header: bool = True) -> Iterator[str]:
    """A JSON array of objects, one row per line."""
    last: str | None = None
    yield "["
    for line in _lines(table, _json_member, ", "):
        if last is not None:
            yield f"{{{last}}},"
        last = line
    if last is not None:
        yield f"{{{last}}}"
    yield "]"


def _lines(table: pa.Table, text: Callable[[pa.Array, str], pa.Array], delimiter: str) -> Iterator[str]:
    for batch in table.to_batches(max_chunksize=_ROWS):
        yield from _joined(
            [text(column, name) for name, column in zip(batch.schema.names, batch.columns, strict=True)],
            delimiter,
        )


def _joined(columns: list[Any], delimiter: str) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if columns:
        arrays = [
            pa.array(column, pa.large_string()) for column in columns
        ]  # a piece of long texts may pass 2 GiB
        yield from pc.binary_join_element_wise(*arrays, pa.scalar(delimiter, pa.large_string())).to_pylist()


def _plain(column: pa.Array, name: str) -> pa.Array:
    """A column as strings; null is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or _is_text(kind):
        return pc.fill_null(pc.cast(column, pa.large_string()), "")
    if pa.types.is_floating(kind) and name.endswith(("(ns)", "(%)")):
        return pa.array(
            ["" if value is None else f"{value:.1f}" for value in column.to_pylist()], pa.large_string()
        )
    return pa.array(
        ["" if value is None else written(value) for value in column.to_pylist()], pa.large_string()
    )


def _json_member(column: pa.Array, name: str) -> pa.Array:
    """A column as `"name": value`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if _is_text(kind):
        texts = pc.cast(column, pa.large_string())
        inner = _edit(texts, r'[\x00-\x1f"\\]', lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
        quote, nothing = (pa.scalar(text, pa.large_string()) for text in ('"', ""))
        texts = pc.binary_join_element_wise(quote, inner, quote, nothing)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = pc.cast(column, pa.large_string())
    else:
        written = (
            json.dumps(_json_value(value), ensure_ascii=False, allow_nan=False)
            for value in column.to_pylist()
        )
        texts = pa.array(list(written), pa.large_string())
    key = json.dumps(name, ensure_ascii=False) + ": "
    return pc.binary_join_element_wise(
        pa.scalar(key, pa.large_string()), pc.fill_null(texts, "null"), pa.scalar("", pa.large_string())
    )


def written(value: Any) -> str:
    """Write a value without quotes; bytes as `0x0a0b`."""
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None  # JSON has no word for them
    return value if isinstance(value, (str, int, float, bool, type(None), list, dict)) else written(value)


def _edit(texts: pa.Array, pattern: str, change: Callable[[str], str]) -> pa.Array:
    """Pass the texts that match through `change`: few do, so that most never become Python strings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    odd = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    if not odd.true_count:
        return texts
    changed = pa.array([change(text) for text in texts.filter(odd).to_pylist()], texts.type)
    return pc.replace_with_mask(texts, odd, changed)


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "@", "\t", "\r", "-")) else text


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
