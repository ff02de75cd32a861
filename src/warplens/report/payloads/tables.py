"""Extended payloads of a report: as values, and as a table with typed columns for each layout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.errors import MissingData
from warplens.report.payloads.columns import fitting, kind_of, structs, values
from warplens.report.payloads.layouts import PayloadLayouts
from warplens.report.payloads.text import text
from warplens.spool.payload_schema import Element, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warplens.report.asked import AskedReport

_BESIDE = ("process", "event_type", "event", "at_end", "cut")
_ROWS = f"SELECT {', '.join(_BESIDE)}, schema, type, data, json FROM payloads"
_WRAPPER = re.compile(
    r"value|str\d*|bytes\d*|bool|u?int\d+|float\d+"
)  # what one value is called by our binding and by PyPI nvtx
_ARRAYS = (("length", "values"), ("shape", "values"), ("size", "data"))
_ROWS_PER_BLOCK = 1 << 18


def table(report: AskedReport, name: str | None = None) -> pa.Table:
    """Return payloads as a table: see `Report.payloads`."""
    if name is None:
        return _as_text(report, report.sql(_ROWS))
    rows = report.sql(f"{_ROWS} WHERE type = $name", {"name": name})
    if not rows.num_rows:
        known = (
            report.sql(
                "SELECT DISTINCT type FROM payloads UNION SELECT DISTINCT name FROM nvtx_schemas ORDER BY 1"
            )
            .column(0)
            .to_pylist()
        )
        if name not in known:
            said = ", ".join(repr(one) for one in known if one) or "none"
            raise MissingData(f"{report.path} has no payloads of the type {name!r}; it has {said}")
    layouts = PayloadLayouts(report)
    parts = [_typed(layouts, schema, name, rows=part) for schema, _, part in _groups(rows)]
    if not parts:
        return rows.select(_BESIDE)
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException:  # layouts of one name that have nothing in common: the values as text
        return _as_text(report, rows)


def decoded(report: AskedReport, rows: pa.Table) -> list[Any]:
    """Return the payloads of rows with schema, type, data and json as dicts, lists, numbers and texts.

    What has no layout that can be read is bytes; JSON is decoded.
    """
    payloads: list[Any] = [None] * rows.num_rows
    layouts = PayloadLayouts(report) if rows.num_rows else None
    for schema, kind, part in _groups(rows.append_column("_row", pa.array(np.arange(rows.num_rows)))):
        data = part.column("data").combine_chunks()
        element = layouts.get(schema, kind) if layouts else None
        given = (
            values(element, data, layouts.strings(schema))
            if element is not None and layouts
            else data.to_pylist()
        )
        for row, value, whole in zip(
            part.column("_row").to_pylist(), given, part.column("json").to_pylist(), strict=True
        ):
            payloads[row] = plain(value) if whole is None else _json(whole)
    return payloads


def plain(value: Any) -> Any:
    """Return the value of a structure that only wraps one, or of an array with its lengths."""
    if isinstance(value, list):
        return [plain(item) for item in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, dict):
        return value
    names = tuple(value)
    if len(names) == 1 and _WRAPPER.fullmatch(names[0]):
        return plain(value[names[0]])
    if names in _ARRAYS and isinstance(value[names[1]], (list, bytes, str)):
        return _shaped(plain(value[names[1]]), value[names[0]])
    return {name: plain(item) if isinstance(item, (dict, list)) else item for name, item in value.items()}


def _shaped(values: Any, shape: Any) -> Any:
    for length in reversed(shape[1:] if isinstance(shape, list) and isinstance(values, list) else []):
        if length > 0 and len(values) % length == 0:
            values = [values[first : first + length] for first in range(0, len(values), length)]
    return values


def _as_text(report: AskedReport, rows: pa.Table) -> pa.Table:
    shown = [text(value) if value is not None else None for value in decoded(report, rows)]
    return rows.select([*_BESIDE, "type"]).append_column("text", pa.array(shown, pa.string()))


def _typed(layouts: PayloadLayouts, schema: int | None, kind: str, rows: pa.Table) -> pa.Table:
    """The columns of one layout, beside those that say whose payload it is."""
    beside = rows.select(_BESIDE)
    if rows.column("json").null_count < rows.num_rows:
        return beside.append_column("json", rows.column("json"))
    data = rows.column("data").combine_chunks()
    element = layouts.get(schema, kind)
    if element is None:
        return beside.append_column("data", data)
    strings = layouts.strings(schema)
    if isinstance(element, Struct) and element.fields:
        whole = structs(element, data, strings)
        for index, item in enumerate(whole.type):
            beside = beside.append_column(
                f"payload.{item.name}" if item.name in beside.column_names else item.name,
                pc.struct_field(whole, [index]),
            )
        return beside
    return beside.append_column("value", _values(element, values(element, data, strings)))


def _values(element: Element, given: list[Any]) -> pa.Array:
    """A column of numbers, or of lists where any payload holds several."""
    several = any(isinstance(value, list) for value in given)
    if several:
        given = [value if isinstance(value, list) or value is None else [value] for value in given]
    if any(isinstance(value, bytes) for value in given):
        return pa.array([bytes([value]) if isinstance(value, int) else value for value in given], pa.binary())
    kind = pa.list_(kind_of(element)) if several else kind_of(element)
    return pa.array([fitting(value, kind) for value in given], kind)


def _groups(rows: pa.Table) -> Iterator[tuple[int | None, str, pa.Table]]:
    """Cut rows by schema and type."""
    if not rows.num_rows:
        return
    schema = pc.fill_null(rows.column("schema"), -1).to_numpy()
    kinds = pc.dictionary_encode(rows.column("type").cast(pa.string())).combine_chunks()
    names = kinds.dictionary.to_pylist()
    codes = kinds.indices.to_numpy(zero_copy_only=False)
    # The row number as the last key keeps the rows of a group in their order.
    order = np.lexsort((np.arange(len(schema)), codes, schema))
    edges = np.flatnonzero((np.diff(schema[order]) != 0) | (np.diff(codes[order]) != 0)) + 1
    for part in np.split(order, edges):
        key = int(schema[part[0]])
        for first in range(0, len(part), _ROWS_PER_BLOCK):
            yield (
                (key if key >= 0 else None),
                names[codes[part[0]]],
                rows.take(pa.array(part[first : first + _ROWS_PER_BLOCK])),
            )


def _json(given: str) -> Any:
    import json

    try:
        return json.loads(given)
    except (ValueError, RecursionError):  # cut, or no JSON at all
        return given
