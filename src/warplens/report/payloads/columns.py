"""Extended payloads as Arrow columns.

Those of a fixed layout all at once, the others one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.report.payloads.values import decoder, enumerated, is_truth, meaning
from warplens.spool.payload_schema import STATIC, Element, Field, Scalar, Struct, Text

_WIDER = {"<f2": pa.float32()}
_CHARS = ("char", "char16", "char32", "wchar")


def kind_of(element: Element) -> pa.DataType:
    """Return the Arrow type of an element's values."""
    if isinstance(element, Text):
        return pa.string()
    if isinstance(element, Struct):
        return (
            pa.struct([pa.field(field.name, field_kind(field)) for field in element.fields])
            if element.fields
            else pa.binary()
        )
    if element.names is not None:
        return pa.bool_() if is_truth(element.names) else pa.string()
    name = element.type.name
    if name in (*_CHARS, "registered_string", "int128", "uint128"):
        return pa.string()
    if not element.type.format:
        return pa.binary()
    if name == "bfloat16":
        return pa.float32()
    return _WIDER.get(element.type.format) or pa.from_numpy_dtype(np.dtype(element.type.format))


def field_kind(field: Field) -> pa.DataType:
    """Return the Arrow type of a field."""
    element = field.element
    if field.many and isinstance(element, Scalar) and element.names is None:
        if element.type.name == "byte":
            return pa.binary()
        if element.type.name in _CHARS:
            return pa.string()
    if (
        isinstance(element, Struct)
        and element.kind != STATIC
        and field.selector < 0
        and element.size is not None
    ):
        return pa.binary()  # a union, and nothing says which member it holds
    return pa.list_(kind_of(element)) if field.many else kind_of(element)


def fixed(struct: Struct) -> bool:
    """Whether every payload of the layout has the same fields at the same places."""
    if struct.kind != STATIC or not struct.size:
        return False
    for field in struct.fields:
        element = field.element
        if field.offset is None or field.count is None or field.jump or field.selector >= 0:
            return False
        if isinstance(element, Struct) and not fixed(element):
            return False
        if isinstance(element, Scalar) and not element.type.format:
            return False
        if field.offset + (field.size or 0) > struct.size:
            return False
    return len({field.name for field in struct.fields}) == len(struct.fields)


def structs(struct: Struct, data: pa.Array, strings: Mapping[int, str]) -> pa.Array:
    """Decode the bytes of many payloads of one structure into a struct array.

    Fields that are cut off are null.
    """
    kind = kind_of(struct)
    if not fixed(struct):
        return _slowly(struct, data, strings, kind=kind)
    size = struct.size or 0
    lengths = np.diff(_offsets(data))
    if len(lengths) and int(lengths.min()) < size:
        return _slowly(struct, data, strings, kind=kind)
    first = _offsets(data)[:-1].astype(np.int64)
    raw = np.frombuffer(data.buffers()[2] or b"", np.uint8)
    block = raw[first[:, None] + np.arange(size)] if len(first) else np.empty((0, size), np.uint8)
    return _block(struct, block, strings)


def values(element: Element, data: pa.Array, strings: Mapping[int, str]) -> list[Any]:
    """Decode the bytes of many payloads into Python values."""
    if isinstance(element, Struct) and fixed(element):
        rows: list[Any] = structs(element, data, strings).to_pylist()
        return rows
    decode = decoder(element, strings)
    return [None if raw is None else decode(raw) for raw in data.to_pylist()]


def _slowly(struct: Struct, data: pa.Array, strings: Mapping[int, str], kind: pa.DataType) -> pa.Array:
    decode = decoder(struct, strings)
    rows = [None if raw is None else decode(raw) for raw in data.to_pylist()]
    return pa.array([fitting(one, kind) for one in rows], kind)


def fitting(value: Any, kind: pa.DataType) -> Any:
    """Make a decoded value fit into a column's type: large integers are text, what is odd is null."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {item.name: fitting(value.get(item.name), item.type) for item in kind}
    if pa.types.is_list(kind):
        return [fitting(item, kind.value_type) for item in value] if isinstance(value, list) else None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else str(value)
    if pa.types.is_binary(kind):
        return value if isinstance(value, bytes) else None
    return value


def _block(struct: Struct, block: npt.NDArray[np.uint8], strings: Mapping[int, str]) -> pa.Array:
    arrays = []
    for field in struct.fields:
        at = field.offset or 0
        arrays.append(_column(field, block[:, at : at + (field.size or 0)], strings))
    kind = kind_of(struct)
    if not arrays:
        return pa.nulls(len(block), kind)
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _column(field: Field, block: npt.NDArray[np.uint8], strings: Mapping[int, str]) -> pa.Array:
    element, count, rows = field.element, field.count or 0, len(block)
    if isinstance(element, Text):
        texts = [raw.tobytes().decode(element.encoding, errors="replace").split("\0", 1)[0] for raw in block]
        return pa.array(texts, pa.string())
    kind = field_kind(field)
    if field.many and pa.types.is_binary(kind):
        return pa.array([raw.tobytes() for raw in block], kind)
    if field.many and pa.types.is_string(kind) and isinstance(element, Scalar):
        decode = decoder(element, strings)
        return pa.array(
            [decode(raw.tobytes()) if count > 1 else str(decode(raw.tobytes())) for raw in block], kind
        )
    size = element.size or 1
    items = np.ascontiguousarray(block).reshape(rows * count, size)
    inner = (
        _block(element, items, strings) if isinstance(element, Struct) else _scalars(element, items, strings)
    )
    if not field.many:
        return inner
    return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * count), inner)


def _scalars(scalar: Scalar, items: npt.NDArray[np.uint8], strings: Mapping[int, str]) -> pa.Array:
    numbers = items.reshape(-1).view(scalar.type.format)
    kind = kind_of(scalar)
    if scalar.names is not None or pa.types.is_string(kind):
        known, which = np.unique(numbers, return_inverse=True)
        if scalar.names is not None:
            meant = [enumerated(scalar.names, number) for number in known.tolist()]
        else:
            meant = [str(meaning(scalar, number, strings)) for number in known.tolist()]
        return pa.array(meant, kind).take(pa.array(which.reshape(-1)))
    if scalar.type.name == "bfloat16":
        return pa.array((numbers.astype(np.uint32) << 16).view(np.float32))
    return pa.array(numbers.astype(np.float32) if scalar.type.format == "<f2" else numbers)


def _offsets(data: pa.Array) -> npt.NDArray[np.int32]:
    """The begin of each byte string in the data buffer, and the end of the last."""
    if not len(data):
        return np.zeros(1, np.int32)
    return np.frombuffer(data.buffers()[1], np.int32)[data.offset : data.offset + len(data) + 1]
