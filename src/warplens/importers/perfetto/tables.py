"""Tables of warplens's own exports, from the events of their category.

Annotations go back to their columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.importers.nsys.calls import enclosing
from warplens.importers.nsys.taken import join
from warplens.importers.perfetto.details import DetailColumn, coded
from warplens.importers.perfetto.own import SliceKind
from warplens.importers.perfetto.slices import PerfettoContext
from warplens.importers.perfetto.trace import INSTANT
from warplens.importers.rows import numbered
from warplens.model.tables import TABLES, Column

_OF_TRACK = ("device", "context", "stream")
_NOTHING: dict[str, Any] = {"bool": False, "dict": "", "string": ""}
_NESTED = ("depth", "parent")


def write(context: PerfettoContext) -> None:
    """Write all tables that the trace has events of.

    API calls first, so that what they started finds them.
    """
    kinds = sorted(
        context.own.kinds.items(),
        key=lambda item: (item[1].table != "cuda_api", item[1].table == "collectives"),
    )
    for category, kind in kinds:
        number = context.trace.number(category)
        both = np.concatenate((context.begins, context.instants))
        mine = both[context.trace.events["category"][both] == number]
        if len(mine):
            _write(context, kind, mine[np.argsort(mine)])


def _write(context: PerfettoContext, kind: SliceKind, rows: Int64Array) -> None:
    rows = context.sorted(rows)
    process, start, end = context.place("process", rows), context.time[rows], context.end[rows]
    end = np.where(context.trace.events["type"][rows] == INSTANT, start, end)
    ids, table = numbered(process), TABLES[kind.table]
    made: dict[str, Any] = {"id": ids, "process": process, "start": start, "end": end}
    names = {column.name for column in table.columns}
    if "thread" in names:
        thread = context.place("thread", rows)
        made["thread"] = pa.array(thread, pa.int64(), mask=thread < 0)
    about = [None if place is None else place.about for place in context.places.of]
    for name in _OF_TRACK:
        if name in names:
            of_track = np.array([detail.get(name, -1) if detail else -1 for detail in about], np.int64)[
                context.trace.events["track"][rows]
            ]
            made[name] = pa.array(of_track, pa.int64(), mask=of_track < 0)
    if kind.name is not None:
        made[kind.name] = coded(context.trace.events["name"][rows], context.trace.texts)
    for column in table.columns:
        detail = context.details.of(rows, column.name.replace("_", " "))
        if detail is not None:
            made[column.name] = _values(detail, column)
    if "correlation" in made:
        _called(context, kind, made, process=process, ids=ids, names=names)
    if "range" in names and "thread" in names:
        around = enclosing(context.ranges, context.place("thread", rows), start)
        made["range"] = pa.array(around, pa.int64(), mask=around < 0)
    if names.issuperset(_NESTED):
        depth, parent = native.nest(
            *(np.ascontiguousarray(values) for values in (context.place("thread", rows), start, end))
        )
        made["depth"], made["parent"] = (
            depth,
            pa.array(np.where(parent < 0, 0, ids[parent]), pa.int64(), mask=parent < 0),
        )
    context.write(
        kind.table,
        {column.name: _fitting(made.get(column.name), column, len(rows)) for column in table.columns},
    )


def _called(
    context: PerfettoContext,
    kind: SliceKind,
    made: dict[str, Any],
    process: Int64Array,
    ids: Int64Array,
    names: set[str],
) -> None:
    """Let what has a number of an API call find the call by it."""
    correlation = made["correlation"].fill_null(0).to_numpy(zero_copy_only=False)
    keys = join(process, correlation)
    if kind.table == "cuda_api":
        order = np.argsort(keys, kind="stable")
        kept = order[correlation[order] != 0]
        context.calls = {"key": keys[kept], "id": ids[kept]}
    elif "api" in names and len(context.calls.get("key", ())):
        known = context.calls["key"]
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        known_call = (known[place] == keys) & (correlation != 0)
        made["api"] = pa.array(context.calls["id"][place], pa.int64(), mask=~known_call)


def _values(detail: DetailColumn, column: Column) -> pa.Array:
    if column.type in ("dict", "string"):
        return detail.texts()
    if column.type == "bool":
        return detail.bools()
    if column.type == "float64":
        return detail.reals()
    return detail.unsigned() if column.type.startswith("uint") else detail.ints()


def _fitting(values: Any, column: Column, size: int) -> Any:
    """Return the values of a column, with something in place of nulls where it may have none."""
    from warplens.storage.schema import field

    wanted = field(column).type
    if values is None:
        values = pa.nulls(size, wanted if not pa.types.is_dictionary(wanted) else pa.string())
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if not column.nullable and array.null_count:
        plain = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
        array = plain.fill_null(pa.scalar(_NOTHING.get(column.type, 0), plain.type))
    if pa.types.is_dictionary(wanted) and not pa.types.is_dictionary(array.type):
        return array.cast(pa.string()).dictionary_encode()
    if pa.types.is_integer(array.type) and pa.types.is_integer(wanted) and array.type != wanted:
        return _narrowed(array, wanted)
    return array


def _narrowed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    from warplens.storage.schema import numpy_type

    there: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = (
        (array.fill_null(0) if array.null_count else array)
        .to_numpy(zero_copy_only=False)
        .astype(numpy_type(wanted))
    )
    return pa.array(numbers, wanted, mask=~there)
