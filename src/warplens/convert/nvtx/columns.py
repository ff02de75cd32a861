"""Arrow tables from the native columns of one slice, without copying."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from warplens.convert.nvtx.domains import Domains
from warplens.spool.events import MARKS, RANGES, Events
from warplens.spool.strings import Strings
from warplens.storage import schema

STYLES = ("PushPop", "StartEnd")
_FLAGS = ("unfinished", "inherited", "clipped")


def slice_table(table: str, events: Events, rows: int, strings: Strings, domains: Domains) -> pa.Table:
    """Return the current slice's rows of `nvtx_ranges` or `nvtx_marks`.

    Good until the next slice is built.
    """
    number = MARKS if table == "nvtx_marks" else RANGES
    wanted = schema.schema(table)
    arrays = [_array(item, number, events, rows=rows, strings=strings, domains=domains) for item in wanted]
    return pa.Table.from_arrays(arrays, schema=wanted)


def _array(
    item: pa.Field, table: int, events: Events, rows: int, strings: Strings, domains: Domains
) -> pa.Array:
    name = item.name
    if name in _FLAGS:
        return pa.Array.from_buffers(
            pa.bool_(), rows, [None, pa.py_buffer(events.column(table, name, np.uint8))]
        )
    kind = item.type.index_type if pa.types.is_dictionary(item.type) else item.type
    values = pa.py_buffer(events.column(table, name, schema.numpy_type(kind)))
    source = "category" if name == "category_id" else name
    valid = (
        pa.py_buffer(events.column(table, f"{source}?", np.uint8)) if item.nullable and name != "id" else None
    )
    array = pa.Array.from_buffers(kind, rows, [valid, values])
    if kind is item.type:
        return array
    return pa.DictionaryArray.from_arrays(
        array, _dictionary(name, table, events, strings=strings, domains=domains), safe=False
    )


def _dictionary(name: str, table: int, events: Events, strings: Strings, domains: Domains) -> pa.Array:
    if name == "style":
        return pa.array(STYLES)
    if name == "message":
        return strings.take(events.column(table, "message=", np.uint32))
    if name == "domain":
        used = events.column(table, "domain=", np.uint32).tolist()
        return pa.array([domains.name(number) for number in used], pa.string())
    pairs: list[int] = events.column(table, "category=", np.uint64).tolist()
    return pa.array([domains.category(pair >> 32, pair & 0xFFFFFFFF) for pair in pairs], pa.string())
