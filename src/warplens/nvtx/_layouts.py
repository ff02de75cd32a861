"""Layouts of extended payloads, as the binding registers them.

Called once per kind of payload and domain, not per event.

A layout is a tuple: `("schema", name, type, flags, size, entries)`, an entry `(name, type, flags, array, offset,
semantics)` whose type is one of NVTX's numbers or a layout; or `("enum", name, size, ((name, value), …))`.
NumPy is never imported here: where it is used, the program has it.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

Layout = tuple[Any, ...]

STATIC, DYNAMIC = 1, 2
DEEP_COPY = 0x2  # a schema's flag
FIXED_ARRAY, ZERO_TERMINATED, LENGTH_AT = 0x10, 0x20, 0x30  # an entry's flags
EVENT_MESSAGE, COUNTER = 1 << 10, 4 << 12
TIMESTAMP = 2 << 10
COUNTER_GROUP = 1 << 3
UINT64, INT64, FLOAT32, FLOAT64 = 18, 17, 43, 44
BYTE, CATEGORY, COLOR, UTF8, UTF32, REGISTERED = 32, 68, 69, 76, 78, 80

METADATA = "nvidia_nvtx_payload_metadata"  # PyPI nvtx's key in a dtype's metadata


def entry(
    name: str,
    type: int | Layout,
    flags: int = 0,
    array: int = 0,
    offset: int = 0,
    semantics: Layout | None = None,
) -> Layout:
    """One entry of a schema."""
    return name, type, flags, array, offset, semantics


def schema(name: str | None, type: int, size: int, *entries: Layout, flags: int = 0) -> Layout:
    """A schema; the size counts where the type is STATIC."""
    return "schema", name, type, flags, size, entries


JSON = schema("warplens.json", DYNAMIC, 0, entry("json", UTF8, ZERO_TERMINATED))
TEXT = schema("warplens.str", DYNAMIC, 0, entry("str", UTF8, ZERO_TERMINATED))
TRUTH = ("enum", "bool", 1, (("False", 0), ("True", 1)))
BOOL = schema("bool", STATIC, 1, entry("value", TRUTH))
COMPLEX64 = schema("complex64", STATIC, 8, entry("real", FLOAT32), entry("imag", FLOAT32, offset=4))
COMPLEX128 = schema("complex128", STATIC, 16, entry("real", FLOAT64), entry("imag", FLOAT64, offset=8))
RANGE = schema(
    "range",
    STATIC,
    24,
    entry("start", INT64),
    entry("stop", INT64, offset=8),
    entry("step", INT64, offset=16),
)

# By the numbers of native/bindings/payloads/schemas.h: what one value is.
KINDS: tuple[tuple[str, int | Layout], ...] = (
    ("", 0),
    ("bool", TRUTH),
    ("int8", 11),
    ("uint8", 12),
    ("int16", 13),
    ("uint16", 14),
    ("int32", 15),
    ("uint32", 16),
    ("int64", INT64),
    ("uint64", UINT64),
    ("float16", 42),
    ("float32", FLOAT32),
    ("float64", FLOAT64),
    ("complex64", COMPLEX64),
    ("complex128", COMPLEX128),
    ("byte", BYTE),
    ("str", UTF8),
)
_BY_NAME = {name: number for number, (name, _) in enumerate(KINDS)}


def array(kind: int, dimensions: int) -> Layout:
    """Values of one kind behind their lengths, a uint64 per dimension."""
    return _array(*KINDS[kind], dimensions)


def _array(name: str, element: int | Layout, dimensions: int) -> Layout:
    shape = entry("shape", UINT64, FIXED_ARRAY, dimensions) if dimensions > 1 else entry("length", UINT64)
    values = entry("values", element, LENGTH_AT, 0, 8 * dimensions)
    return schema(f"{name}[{','.join(':' * dimensions)}]", DYNAMIC, 0, shape, values)


def of_dtype(dtype: Any, dimensions: int) -> tuple[Layout | None, int, bool]:
    """Return layout, kind of a plain number, and whether the array's bytes fit, for a NumPy dtype.

    The layout is None if JSON has to do.
    """
    element, name = _element(dtype)
    if element is None:
        return None, 0, False
    as_is = bool(dtype.isnative) and dtype.kind not in "mM"
    if dimensions > 0:
        return _array(name, element, dimensions), 0, as_is
    if isinstance(element, tuple) and element[0] == "schema":
        return element, 0, as_is
    return schema(name, STATIC, dtype.itemsize, entry("value", element)), _BY_NAME.get(name, 0), as_is


def _element(dtype: Any) -> tuple[int | Layout | None, str]:
    """The type of one element, None if there is none, and its name."""
    if dtype.names is not None:
        return _structure(dtype), "struct"
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        element, name = _element(base)
        if element is None:
            return None, ""
        return schema(
            name, STATIC, dtype.itemsize, entry("values", element, FIXED_ARRAY, _count(shape))
        ), name
    if dtype.kind in "USV":
        if dtype.itemsize == 0:
            return None, dtype.name
        text = entry("str", UTF32, 0, dtype.itemsize // 4)
        made = text if dtype.kind == "U" else entry("bytes", BYTE, FIXED_ARRAY, dtype.itemsize)
        return schema(dtype.name, STATIC, dtype.itemsize, made), dtype.name
    if dtype.kind in "mM":
        return schema(dtype.name, STATIC, 8, entry(dtype.name, INT64)), dtype.name
    if dtype.kind == "f" and dtype.itemsize == 16:
        return 21, "longdouble"
    return KINDS[_BY_NAME[dtype.name]][1] if dtype.name in _BY_NAME else None, dtype.name


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _structure(dtype: Any, flags: int = 0) -> Layout | None:
    entries = []
    # `names`, not `fields`: those hold titles as well.
    for name in dtype.names:
        field, offset = dtype.fields[name][:2]
        made = _field(name, field, offset)
        if made is None:
            return None
        entries.append(made)
    return schema(None, STATIC, dtype.itemsize, *entries, flags=flags)


def _field(name: str, dtype: Any, offset: int) -> Layout | None:
    kind, type_, semantics = metadata_of(dtype)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        element, _ = _element(base)
        return (
            None
            if element is None
            else entry(name, type_ or element, FIXED_ARRAY | kind, _count(shape), offset, semantics)
        )
    if dtype.kind == "U" and dtype.itemsize:
        return entry(name, UTF32, kind, dtype.itemsize // 4, offset)
    if dtype.kind in "SV" and dtype.itemsize and dtype.names is None:
        return entry(name, BYTE, FIXED_ARRAY | kind, dtype.itemsize, offset)
    element, _ = _element(dtype)
    return None if element is None else entry(name, type_ or element, kind, 0, offset, semantics)


def metadata_of(dtype: Any) -> tuple[int, int, Layout | None]:
    """Flags, type and semantics that `nvtx.numpy_dtype` gave a dtype.

    0, 0 and None if it gave none.
    """
    meant = (dtype.metadata or {}).get(METADATA)
    kind, type_ = getattr(meant, "entry_kind", None), getattr(meant, "entry_type", None)
    semantics = getattr(meant, "counter_semantics", None)
    return kind.value if kind else 0, type_.value if type_ else 0, semantics_of(semantics)


def semantics_of(semantics: Any) -> Layout | None:
    """Return CounterSemantics as the binding reads it.

    Flags, unit, numerator, denominator, type of the limits, min, max.
    """
    if semantics is None:
        return None
    limits = (semantics.min, semantics.max)
    flags = semantics.value_type.value | semantics.interpolation.value
    flags |= sum(bit for bit, limit in zip((1 << 2, 1 << 3), limits, strict=True) if limit is not None)
    given = [limit for limit in limits if limit is not None]
    kind = 0
    if given:
        # The type of the counter is not known here: numbers that need no sign are unsigned, as PyPI nvtx has it.
        kind = 3 if isinstance(given[0], float) else 1 if min(given) < 0 else 2
    return (
        flags,
        semantics.unit,
        semantics.unit_scale_numerator,
        semantics.unit_scale_denominator,
        kind,
        *limits,
    )


def plain_array(array: Any, dtype: Any) -> Any:
    """Return an array with bytes in the layout of its dtype, or None.

    In this machine's byte order, dates as numbers.
    """
    if array.nbytes > _MOST_BYTES:
        array = _first_block(array)
    if dtype.kind in "mM":
        array = array.astype(dtype.newbyteorder("="))
        return array.view("i8") if array.ndim else array.reshape(1).view("i8").reshape(())
    return array.astype(dtype.newbyteorder("=")) if not dtype.isnative else None


def _first_block(array: Any) -> Any:
    """A little more than is kept of a large array: the same rank, and the same beginning."""
    for axis in range(array.ndim):
        row = array.nbytes // array.shape[axis]
        kept = min(_MOST_BYTES // row + 1, array.shape[axis])
        array = array[(slice(None),) * axis + (slice(kept),)]
        if kept > 1:
            break
    return array


def array_of(items: tuple[Any, ...]) -> Any:
    """The NumPy array of items that are NumPy's themselves.

    None if they are not, or make no array.
    """
    numpy = sys.modules.get("numpy")
    if numpy is None or not any(hasattr(item, "dtype") for item in items[:8]):
        return None
    if sum(getattr(item, "nbytes", 8) for item in items) > 8 * _MOST_BYTES:
        return None
    try:
        made = numpy.asarray(items)
    except (ValueError, TypeError):
        return None
    return None if made.dtype.kind == "O" else made


def plain_object(payload: Any) -> Any:
    """A dict, list or number that says what the object holds; None if it does not say."""
    if hasattr(payload, "_asdict"):
        return dict(payload._asdict())
    if hasattr(type(payload), "__dataclass_fields__") and not isinstance(payload, type):
        return {name: getattr(payload, name, None) for name in type(payload).__dataclass_fields__}
    if hasattr(payload, "keys") and hasattr(type(payload), "__getitem__"):
        return {key: payload[key] for key in islice(payload.keys(), _MOST_ITEMS + 1)}
    if isinstance(payload, (set, frozenset)):
        return list(islice(payload, _MOST_ITEMS + 1))
    if type(payload).__module__ == "numpy" and hasattr(payload, "tolist"):
        return [payload.tolist()]
    return None


_LONGEST = 65536  # numbers of an array within JSON
_MOST_BYTES = 1 << 20  # as in native/bindings/payloads/reading.h
_MOST_ITEMS = _MOST_BYTES // 2  # each is at least a sign and a comma of JSON


def beginning_of(payload: Any) -> Any:
    """As much of lists, dicts and texts as makes more JSON than is kept."""
    return _beginning(payload, [_MOST_ITEMS], 0)


def _beginning(value: Any, budget: list[int], depth: int) -> Any:
    budget[0] -= 1
    if isinstance(value, (str, bytes, bytearray)):
        part = value if len(value) <= _MOST_BYTES else value[: _MOST_BYTES + 1]
        budget[0] -= len(part) // 2
        return part
    if isinstance(value, range):
        return list(value[: _MOST_ITEMS + 1])
    if isinstance(value, (set, frozenset)):
        value = list(islice(value, max(budget[0], 0) + 1))
    if depth > 200 or not isinstance(value, (list, tuple, dict)):
        return value
    if isinstance(value, dict):
        named = {}
        for key in islice(value, max(budget[0], 0) + 1):
            if budget[0] < 0:
                break
            named[_beginning(key, budget, depth + 1) if isinstance(key, str) else key] = _beginning(
                value.get(key), budget, depth + 1
            )
        return named
    made = []
    for item in islice(value, max(budget[0], 0) + 1):
        if budget[0] < 0:
            break
        made.append(_beginning(item, budget, depth + 1))
    return made


def to_json(payload: Any) -> str:
    """JSON without NaN: what JSON has no word for becomes a string.

    Raises:
        ValueError: the object holds itself.
    """
    import json

    try:
        return json.dumps(
            payload, ensure_ascii=False, allow_nan=False, default=_default, separators=(",", ":")
        )
    except (ValueError, TypeError):
        return json.dumps(
            _strict(payload, set()), ensure_ascii=False, default=_default, separators=(",", ":")
        )


def _default(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value[: _MOST_BYTES + 1]).decode("utf-8", "backslashreplace")
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, range):
        return list(value[: _MOST_ITEMS + 1])
    if hasattr(type(value), "__dlpack__") and type(value).__module__ != "numpy":
        return f"<{type(value).__name__}>"  # it may be on a device, and reading it would wait for that
    if hasattr(value, "tolist"):
        if getattr(value, "size", 0) > _LONGEST:
            return f"<{type(value).__name__} {value.shape} {value.dtype}>"
        return value.tolist()
    plain = plain_object(value)
    return plain if plain is not None else str(value)


def _strict(value: Any, above: set[int]) -> Any:
    if isinstance(value, float) and not isinstance(value, bool):
        return value if value - value == 0 else str(value)
    if value is None or isinstance(value, (str, int)):
        return value
    if id(value) in above:
        raise ValueError("the payload contains itself")
    above = above | {id(value)}
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else str(key): _strict(item, above) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_strict(item, above) for item in value]
    return _strict(_default(value), above)


def ending(parts: int) -> Layout:
    """Return bits for what a pop or end changes.

    1 a registered message, 2 the colour, 4 the category, 8 a message as text behind them.
    """
    entries = []
    if parts & 1:
        entries.append(entry("message", REGISTERED, EVENT_MESSAGE))
    if parts & 2:
        entries.append(entry("color", COLOR, offset=8))
    if parts & 4:
        entries.append(entry("category", CATEGORY, offset=12))
    if parts & 8:
        entries.append(entry("message", UTF8, EVENT_MESSAGE | ZERO_TERMINATED, offset=16))
    return schema("warplens.end", DYNAMIC if parts & 8 else STATIC, 16, *entries)
