"""Arrow tables from the native columns of one slice, without copying."""

from __future__ import annotations

import pyarrow as pa

from warplens.convert.nvtx.domains import Domains
from warplens.spool.events import MARKS, RANGES, Events
from warplens.spool.strings import Strings
from warplens.storage import schema

STYLES = ("PushPop", "StartEnd")


def slice_table(table: str, events: Events, strings: Strings, domains: Domains) -> pa.Table:
    """Return the current slice's rows of `nvtx_ranges` or `nvtx_marks`."""
    columns = events.table(MARKS if table == "nvtx_marks" else RANGES)
    wanted = schema.schema(table)
    arrays = [_with_texts(name, columns.column(name), strings, domains=domains) for name in wanted.names]
    return pa.Table.from_arrays(arrays, schema=wanted)


def texts(column: pa.DictionaryArray, strings: Strings) -> pa.DictionaryArray:
    """Return a column of texts for one of places in the strings of the spool."""
    return pa.DictionaryArray.from_arrays(
        column.indices, strings.take(column.dictionary.to_numpy()), safe=False
    )


def _with_texts(name: str, column: pa.Array, strings: Strings, domains: Domains) -> pa.Array:
    if name == "style":
        return pa.DictionaryArray.from_arrays(column, pa.array(STYLES), safe=False)
    if not pa.types.is_dictionary(column.type):
        return column
    if name == "message":
        return texts(column, strings)
    used: list[int] = column.dictionary.to_pylist()
    names = [
        domains.name(number) if name == "domain" else domains.category(number >> 32, number & 0xFFFFFFFF)
        for number in used
    ]
    return pa.DictionaryArray.from_arrays(column.indices, pa.array(names, pa.string()), safe=False)
