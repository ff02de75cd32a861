"""The predefined NVTX types of payload entries: name, NumPy format, size and alignment.

For x86-64 and aarch64 Linux.
"""

from __future__ import annotations

from dataclasses import dataclass

STATIC_IDS = 1 << 24  # from here on ids are schemas and enumerations
REFERENCED, RAW = 1022, 1023
REGISTERED_STRING = 80
UNION_SELECTOR = 100


@dataclass(frozen=True)
class Predefined:
    """One type. `format`: NumPy's, empty if it has none; the alignment is the size."""

    name: str
    format: str
    size: int

    @property
    def numeric(self) -> bool:
        """Whether it is a number that a counter could have."""
        return self.format != "" and self.name not in _NO_NUMBERS


_NO_NUMBERS = (
    "address",
    "range_id",
    "category",
    "color",
    "scope",
    "pid",
    "tid",
    "pid64",
    "tid64",
    "registered_string",
    "char",
    "char16",
    "char32",
    "wchar",
    "byte",
)

_INTEGERS = {
    1: "char",
    3: "short",
    5: "int",
    7: "long",
    9: "longlong",
    11: "int8",
    13: "int16",
    15: "int32",
    17: "int64",
}
_SIZES = {1: 1, 3: 2, 5: 4, 7: 8, 9: 8, 11: 1, 13: 2, 15: 4, 17: 8}

TYPES: dict[int, Predefined] = {
    **{
        number: Predefined(f"int{8 * _SIZES[number]}", f"<i{_SIZES[number]}", _SIZES[number])
        for number in _INTEGERS
    },
    **{
        number + 1: Predefined(f"uint{8 * _SIZES[number]}", f"<u{_SIZES[number]}", _SIZES[number])
        for number in _INTEGERS
    },
    1: Predefined("char", "<u1", 1),
    19: Predefined("float32", "<f4", 4),
    20: Predefined("float64", "<f8", 8),
    21: Predefined("longdouble", "", 16),
    22: Predefined("uint64", "<u8", 8),
    23: Predefined("address", "<u8", 8),
    24: Predefined("wchar", "<u4", 4),
    25: Predefined("char", "<u1", 1),
    26: Predefined("char16", "<u2", 2),
    27: Predefined("char32", "<u4", 4),
    32: Predefined("byte", "<u1", 1),
    33: Predefined("int128", "", 16),
    34: Predefined("uint128", "", 16),
    42: Predefined("float16", "<f2", 2),
    43: Predefined("float32", "<f4", 4),
    44: Predefined("float64", "<f8", 8),
    45: Predefined("float128", "", 16),
    50: Predefined("bfloat16", "<u2", 2),
    52: Predefined("tf32", "<f4", 4),
    67: Predefined("range_id", "<u8", 8),
    68: Predefined("category", "<u4", 4),
    69: Predefined("color", "<u4", 4),
    70: Predefined("scope", "<u8", 8),
    71: Predefined("pid", "<u4", 4),
    72: Predefined("pid64", "<u8", 8),
    73: Predefined("tid", "<u4", 4),
    74: Predefined("tid64", "<u8", 8),
    75: Predefined("string", "", 1),
    76: Predefined("string", "", 1),
    77: Predefined("string16", "", 2),
    78: Predefined("string32", "", 4),
    REGISTERED_STRING: Predefined("registered_string", "<u8", 8),
}
STRINGS = {75: "utf-8", 76: "utf-8", 77: "utf-16-le", 78: "utf-32-le"}


NUMBERS = {
    known.name: number for number, known in reversed(TYPES.items())
}  # types of one name have one layout


def name_of(number: int) -> str:
    """Return the name of a predefined type, or its number where NVTX defines none."""
    if number in (REFERENCED, RAW):
        return "referenced" if number == REFERENCED else "raw"
    known = TYPES.get(number)
    return known.name if known else f"type {number}"
