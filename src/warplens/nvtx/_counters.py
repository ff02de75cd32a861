"""Semantics of counters (`CounterSemantics`), and the layouts of their samples.

Asked once per counter, not per sample.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NoReturn

from warplens.nvtx import _layouts
from warplens.nvtx._enums import CounterInterpolation, CounterValueType, EntryKind, PayloadEntryType
from warplens.nvtx._warnings import NvtxWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy

_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


class CounterSemantics:
    """What the values of a counter mean: unit, kind, limits. Immutable and hashable.

    Args:
        unit: what is counted (`"bytes"`), kept as bytes.
        value_type: how samples relate to one another.
        interpolation: what the counter is between samples.
        min: the lowest possible value, an int or a float.
        max: the highest, of the same type.
        unit_scale_numerator: with the denominator, what a value is to be multiplied by to be in the unit.
        unit_scale_denominator: see there.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: limits that contradict each other or need more than 64 bits, or a scale that is not positive.
    """

    __slots__ = (
        "interpolation",
        "max",
        "min",
        "unit",
        "unit_scale_denominator",
        "unit_scale_numerator",
        "value_type",
    )

    unit: bytes | None
    value_type: CounterValueType
    interpolation: CounterInterpolation
    min: int | float | None
    max: int | float | None
    unit_scale_numerator: int
    unit_scale_denominator: int

    def __init__(
        self,
        unit: str | bytes | None = None,
        value_type: CounterValueType = CounterValueType.ABSOLUTE,
        interpolation: CounterInterpolation = CounterInterpolation.POINT,
        min: int | float | None = None,
        max: int | float | None = None,
        unit_scale_numerator: int = 1,
        unit_scale_denominator: int = 1,
    ) -> None:
        if unit is not None and not isinstance(unit, (str, bytes)):
            raise TypeError(f"unit must be a str or None, not {type(unit).__name__}")
        if not isinstance(value_type, CounterValueType):
            raise TypeError(f"value_type must be a CounterValueType, not {type(value_type).__name__}")
        if not isinstance(interpolation, CounterInterpolation):
            raise TypeError(
                f"interpolation must be a CounterInterpolation, not {type(interpolation).__name__}"
            )
        _check_limits(min, max)
        _check_scale("unit_scale_numerator", unit_scale_numerator)
        _check_scale("unit_scale_denominator", unit_scale_denominator)
        encoded = unit.encode("utf-8", "backslashreplace") if isinstance(unit, str) else unit
        values = (encoded, value_type, interpolation, min, max, unit_scale_numerator, unit_scale_denominator)
        for name, value in zip(_FIELDS, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"CounterSemantics cannot be changed (tried to set {name})")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"CounterSemantics cannot be changed (tried to delete {name})")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _FIELDS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CounterSemantics) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()

    def __repr__(self) -> str:
        return f"CounterSemantics({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"


_FIELDS = (
    "unit",
    "value_type",
    "interpolation",
    "min",
    "max",
    "unit_scale_numerator",
    "unit_scale_denominator",
)
CounterSemantics.__module__ = "warplens.nvtx"


def _check_limits(low: object, high: object) -> None:
    given = [limit for limit in (low, high) if limit is not None]
    for limit in given:
        if not isinstance(limit, (int, float)):
            raise TypeError(f"min and max must be an int, a float or None, not {type(limit).__name__}")
    numbers: Any = given
    if len(numbers) == 2:
        if isinstance(low, float) != isinstance(high, float):
            raise ValueError(
                f"min and max must be of one type: both int or both float, not {low!r} and {high!r}"
            )
        if numbers[0] > numbers[1]:
            raise ValueError(f"min ({low!r}) is above max ({high!r})")
    if numbers and not isinstance(numbers[0], float):
        lowest, highest = (_INT64_MIN, _INT64_MAX) if min(numbers) < 0 else (0, _UINT64_MAX)
        if min(numbers) < lowest or max(numbers) > highest:
            raise ValueError(f"min and max must fit in 64 bits together: from {lowest} to {highest}")


def _check_scale(name: str, value: object) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not 1 <= value <= _UINT64_MAX:
        raise ValueError(f"{name} must be from 1 to 2**64 - 1, not {value}")


class _PayloadMetadata:
    """What `numpy_dtype` leaves in a dtype."""

    __slots__ = ("counter_semantics", "entry_kind", "entry_type")

    def __init__(
        self,
        counter_semantics: CounterSemantics | None,
        entry_kind: EntryKind | None,
        entry_type: PayloadEntryType | None,
    ) -> None:
        self.counter_semantics = counter_semantics
        self.entry_kind = entry_kind
        self.entry_type = entry_type

    def _values(self) -> tuple[Any, ...]:
        return self.counter_semantics, self.entry_kind, self.entry_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PayloadMetadata) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._values()


def numpy_dtype(
    *args: Any,
    counter_semantics: CounterSemantics | None = None,
    entry_kind: EntryKind | None = None,
    entry_type: PayloadEntryType | None = None,
    **kwargs: Any,
) -> numpy.dtype[Any]:
    """A NumPy dtype that says what its values mean; imports NumPy.

    Args:
        args: as for `numpy.dtype`.
        counter_semantics: what the field of a structured counter means.
        entry_kind: what the field is to its event (a timestamp, the message).
        entry_type: what the field's integer means (a colour, a category, …).
        kwargs: as for `numpy.dtype`.

    Raises:
        TypeError: `entry_kind` or `entry_type` is something else, or does not fit the dtype.
        RuntimeError: NumPy is not installed.
    """
    try:
        import numpy
    except ImportError:
        raise RuntimeError("nvtx.numpy_dtype() needs NumPy: pip install numpy") from None

    if entry_kind is not None and not isinstance(entry_kind, EntryKind):
        raise TypeError(f"entry_kind must be a nvtx.EntryKind or None, not {type(entry_kind).__name__}")
    if entry_type is not None and not isinstance(entry_type, PayloadEntryType):
        raise TypeError(
            f"entry_type must be a nvtx.PayloadEntryType or None, not {type(entry_type).__name__}"
        )
    dtype: numpy.dtype[Any] = numpy.dtype(*args, **kwargs)
    if entry_kind not in (None, EntryKind.MESSAGE) and not (dtype.kind in "iu" and dtype.itemsize == 8):
        raise TypeError(f"{entry_kind} needs an integer of 64 bits, not {dtype}")
    if entry_type is not None:
        bits = 32 if entry_type in (PayloadEntryType.CATEGORY, PayloadEntryType.COLOR_ARGB) else 64
        if dtype.kind != "u" or dtype.itemsize * 8 != bits or not dtype.isnative:
            raise TypeError(
                f"{entry_type} needs an unsigned integer of {bits} bits in this machine's byte "
                f"order, not {dtype}"
            )
    if counter_semantics is None and entry_kind is None and entry_type is None:
        return dtype
    metadata = dict(dtype.metadata or {})
    if _layouts.METADATA in metadata:
        warnings.warn("the dtype already has NVTX metadata, which stays unchanged", NvtxWarning, stacklevel=2)
        return dtype
    metadata[_layouts.METADATA] = _PayloadMetadata(counter_semantics, entry_kind, entry_type)
    made: numpy.dtype[Any] = numpy.dtype(dtype, metadata=metadata)
    return made


# Numbers of native/bindings/payloads/counter.cpp.
INT64, FLOAT64, EXTENDED = 0, 1, 2
Spec = tuple[int, Any, int, tuple[tuple[str, int, int], ...]]
_TYPES: dict[Any, int] = {int: 8, float: 12, bool: 1, "int": 8, "float": 12}
_TYPES |= {name: kind for kind, (name, _) in enumerate(_layouts.KINDS) if 2 <= kind <= 12}


def spec_of(dtype: Any) -> tuple[Spec, Any]:
    """How samples of a dtype are laid out, and the dtype in NumPy's own form where it is NumPy's.

    The layout: which class of counter, NVTX's type or a layout, bytes per sample, and (name, kind, offset) of each number
    in it; those are empty if only NumPy can write one.

    Raises:
        TypeError: it is none that a counter can have.
    """
    if isinstance(dtype, dict):
        return _group(dtype), dtype
    simple = _TYPES.get(dtype) if isinstance(dtype, (str, type)) else None
    if simple is None and isinstance(dtype, type) and dtype.__module__ == "warplens.nvtx":
        simple = _number(dtype.__name__)
    if simple is not None and simple != 1:
        return _scalar(simple), dtype
    if dtype is None:
        raise TypeError("a counter needs a dtype: int, float, a dict of names and these, or a NumPy dtype")
    # A caller that gives a NumPy dtype has NumPy.
    numpy = sys.modules.get("numpy")
    if numpy is None:
        raise TypeError(
            f"a counter's dtype must be int, float or a dict of names and these, not {dtype!r} "
            "(for NumPy's, import numpy)"
        )
    try:
        made = numpy.dtype(dtype)
    except TypeError:
        raise TypeError(
            "a counter's dtype must be int, float, a dict of names and these, or a NumPy dtype, "
            f"not {dtype!r}"
        ) from None
    return _of_numpy(made), made


def _number(name: str) -> int | None:
    return _layouts._BY_NAME.get(name)


def _scalar(kind: int) -> Spec:
    name, type_ = _layouts.KINDS[kind]
    size = int(name.lstrip("intufloa")) // 8 if name != "bool" else 1
    which = INT64 if kind == 8 else FLOAT64 if kind == 12 else EXTENDED
    return which, type_, size, (("", kind, 0),)


def _group(fields: dict[Any, Any]) -> Spec:
    if not fields:
        raise TypeError("a group of counters needs at least one")
    entries, numbers, offset, widest = [], [], 0, 1
    for name, type_ in fields.items():
        kind = _TYPES.get(type_) if isinstance(type_, (str, type)) else None
        if kind is None and isinstance(type_, type) and type_.__module__ == "warplens.nvtx":
            kind = _number(type_.__name__)
        if kind is None or kind == 1 or not isinstance(name, str):
            raise TypeError(
                f"a group of counters holds names with int, float or nvtx.int32 …, not {name!r}: {type_!r}"
            )
        size = _scalar(kind)[2]
        offset += -offset % size
        entries.append(_layouts.entry(name, _layouts.KINDS[kind][1], _layouts.COUNTER, 0, offset))
        numbers.append((name, kind, offset))
        offset, widest = offset + size, max(widest, size)
    size = offset + -offset % widest
    return (
        EXTENDED,
        _layouts.schema(None, _layouts.STATIC, size, *entries, flags=_layouts.COUNTER_GROUP),
        size,
        tuple(numbers),
    )


def _of_numpy(dtype: Any) -> Spec:
    if dtype.itemsize == 0:
        raise TypeError(f"a counter cannot hold {dtype}: it has no bytes")
    if dtype.subdtype is not None and dtype.subdtype[0].names is not None:
        raise TypeError(
            "Nested counter groups are not supported: a counter's dtype must not be a fixed-size "
            "array of a structured dtype"
        )
    if dtype.names is None:
        kind = _number(dtype.name)
        if kind is not None and dtype.isnative and 2 <= kind <= 12 and not dtype.metadata:
            return _scalar(kind)
        layout = _layouts.of_dtype(dtype, 0)[0]
        if layout is None:
            raise TypeError(f"a counter cannot hold {dtype}")
        return EXTENDED, layout, dtype.itemsize, ()
    entries, numbers = [], []
    for name in dtype.names:
        field, offset = dtype.fields[name][:2]
        if field.subdtype is not None:
            raise TypeError(
                f"array fields are not supported in a group of counters: {name!r} must be one number"
            )
        if field.names is not None:
            raise TypeError(f"Nested counter groups are not supported: {name!r} must be one number")
        made = _layouts._field(name, field, offset)
        if made is None:
            raise TypeError(f"a counter cannot hold {field} ({name!r})")
        kind_flags = made[2] if made[2] & _layouts.TIMESTAMP else made[2] | _layouts.COUNTER
        entries.append((*made[:2], kind_flags, *made[3:]))
        number = _number(field.name) if field.isnative else None
        numbers.append((name, number if number is not None and number <= 12 else 0, offset))
    layout = _layouts.schema(None, _layouts.STATIC, dtype.itemsize, *entries, flags=_layouts.COUNTER_GROUP)
    return EXTENDED, layout, dtype.itemsize, tuple(numbers) if all(kind for _, kind, _ in numbers) else ()


def pack(value: Any, dtype: Any) -> bytes | None:
    """Samples as bytes, by NumPy; None if they do not fit the dtype."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    # Of a fixed-size array NumPy would make an array for each number.
    base, shape = getattr(dtype, "subdtype", None) or (dtype, ())
    try:
        array = numpy.ascontiguousarray(value, dtype=base)
    except (ValueError, TypeError, OverflowError):
        return None
    if shape and array.shape[-len(shape) :] != shape:
        return None
    packed: bytes = array.tobytes()
    return packed


__all__ = ["CounterSemantics", "NvtxWarning", "numpy_dtype"]
