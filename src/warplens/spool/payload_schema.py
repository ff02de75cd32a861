"""Layouts of extended payloads: what a program registered, resolved to elements at offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warplens.spool.payload_types import STATIC_IDS, STRINGS, TYPES, UNION_SELECTOR, Predefined
from warplens.spool.process import number, text

LARGEST = 1 << 20  # bytes: the agent cuts longer payloads
_DEEPEST, _MOST_ENTRIES = 8, 1 << 14
_SIGNED_FIELDS, _SIGNED_DEPTH = 12, 2
_ID = (1 << 64) - 1
POINTER, FROM_BASE, FROM_HERE, HIDE, MESSAGE, COUNTER = 1 << 1, 1 << 2, 1 << 3, 1 << 9, 1 << 10, 4 << 12
FIXED, TERMINATED, BY_ENTRY, BY_PAYLOAD = 1 << 4, 2 << 4, 3 << 4, 4 << 4
_ARRAY, _ATTRIBUTE, _ROLE = 7 << 4, 3 << 10, 15 << 12
STATIC, DYNAMIC, UNION, UNION_SELECTED = 1, 2, 3, 4


@dataclass(frozen=True)
class Enumeration:
    """Names of values.

    `size`: bytes of a value. `flags`: the values are bits that may be set together.
    """

    name: str
    size: int
    values: Mapping[int, str]
    flags: bool


@dataclass(frozen=True)
class Field:
    """One entry.

    `offset` is None if it depends on what comes before; `count` is None if it does (see
    `length`).

    `length`: index of the entry with the array's lengths (BY_ENTRY), or of the payload with them (BY_PAYLOAD).
    `selector`: index of the entry that says which member of a union is there. `jump`: POINTER, FROM_BASE or FROM_HERE where
    the entry holds a place instead of the thing itself.
    """

    name: str
    element: Element
    offset: int | None
    array: int
    count: int | None
    length: int
    selector: int
    jump: int
    align: int
    flags: int
    semantics: Any

    @property
    def size(self) -> int | None:
        """Bytes that it takes where it stands."""
        if self.jump:
            return 8
        return None if self.element.size is None or self.count is None else self.element.size * self.count

    @property
    def many(self) -> bool:
        """Whether its value is a list."""
        return self.array != 0 and not isinstance(self.element, Text)


@dataclass(frozen=True)
class Scalar:
    """A number, or the value of an enumeration."""

    type: Predefined
    size: int
    align: int
    names: Enumeration | None = None


@dataclass(frozen=True)
class Text:
    """A string; the element is one code unit, and the field's count how many there are."""

    encoding: str
    size: int
    align: int


@dataclass(frozen=True)
class Struct:
    """Fields behind each other, or, of a union, in the same place.

    `size` is None for dynamic ones.
    """

    name: str
    fields: tuple[Field, ...]
    kind: int
    size: int | None
    align: int


Element = Scalar | Text | Struct
Lookup = Callable[[int], Mapping[str, Any] | None]  # NVTX's id -> its definition


class Unreadable(Exception):
    """A definition that says no layout; the message says why."""


def parse(data: Mapping[str, Any], lookup: Lookup) -> Struct | Scalar:
    """Resolve the definition of a schema or enumeration; `lookup` finds those it refers to.

    Raises Unreadable.
    """
    return _Parser(lookup).parse(data, 0)


class _Parser:
    """Resolves one definition; nesting can multiply entries without end, so they are counted."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._left = _MOST_ENTRIES

    def parse(self, data: Mapping[str, Any], depth: int) -> Struct | Scalar:
        if depth > _DEEPEST:
            raise Unreadable("schemas are nested too deep, or within themselves")
        if data.get("kind") == "enum":
            return _enumeration(data)
        entries = data.get("entries")
        if data.get("kind") != "schema" or not isinstance(entries, list) or data.get("cut"):
            raise Unreadable("the schema is incomplete")
        kind, pack = number(data.get("type")) or 0, number(data.get("align")) or 0
        layout = _Layout(kind, pack)
        for index, entry in enumerate(entries):
            if not isinstance(entry, Mapping):
                raise Unreadable(f"entry {index} is no object")
            self._left -= 1
            if self._left < 0:
                raise Unreadable(f"it has more than {_MOST_ENTRIES} entries")
            layout.add(index, entry, self.element(number(entry.get("type"), _ID) or 0, depth))
        size = layout.end
        given = number(data.get("size")) or 0
        if kind == DYNAMIC or size is None:
            size = None
        elif given:
            size = given
        else:
            size = _align(size, layout.align)
        if kind == UNION_SELECTED:
            raise Unreadable("a union with a selector inside lacks its position")
        if size is not None and size > LARGEST:
            raise Unreadable(f"it is {size} bytes long")
        return Struct(text(data.get("name")), tuple(layout.fields), kind, size=size, align=layout.align)

    def element(self, kind: int, depth: int) -> Element:
        if kind >= STATIC_IDS:
            inner = self._lookup(kind)
            if inner is None:
                raise Unreadable(f"it refers to the schema {kind}, which was not recorded")
            return unwrapped(self.parse(inner, depth + 1))
        if kind == UNION_SELECTOR:
            raise Unreadable("a union with a selector inside lacks its position")
        known = TYPES.get(kind)
        if known is None:
            raise Unreadable(f"it has an entry of the unknown type {kind}")
        if kind in STRINGS:
            return Text(STRINGS[kind], known.size, known.size)
        return Scalar(known, known.size, known.size)


class _Layout:
    """Puts entries behind each other as the program's compiler does."""

    def __init__(self, kind: int, pack: int) -> None:
        self.kind, self.pack = kind, pack
        self.fields: list[Field] = []
        self.end: int | None = 0
        self.align = 1

    def add(self, index: int, entry: Mapping[str, Any], element: Element) -> None:
        flags = number(entry.get("flags"), _ID) or 0
        detail = number(entry.get("array"), _ID) or 0
        given = number(entry.get("offset"), _ID) or 0
        array = flags & _ARRAY
        if array not in (0, FIXED, TERMINATED, BY_ENTRY, BY_PAYLOAD):
            raise Unreadable(f"entry {index} is an array of an unknown kind")
        jump = flags & (POINTER | FROM_BASE | FROM_HERE)
        is_text = isinstance(element, Text)
        if is_text and not array and not detail:
            jump, array = jump or POINTER, TERMINATED
        elif is_text and not array:
            array = FIXED
        if array == BY_ENTRY and detail >= index:
            raise Unreadable(f"entry {index} has its length in a later one")
        count = detail if array == FIXED else 1 if not array else None
        if count is not None and count * (element.size or 1) > LARGEST:
            raise Unreadable(f"entry {index} is an array of {count}")
        align = 8 if jump else element.align
        align = min(align, self.pack) if self.pack else align
        self.align = max(self.align, align)
        at = self._place(index, given, align)
        selector = detail if isinstance(element, Struct) and element.kind == UNION and not array else -1
        name = text(entry.get("name")) or f"field{index}"
        semantics = entry.get("semantics")
        field = Field(
            name,
            element,
            at,
            array=array,
            count=count,
            length=detail if array in (BY_ENTRY, BY_PAYLOAD) else -1,
            selector=selector,
            jump=jump,
            align=align,
            flags=flags,
            semantics=semantics,
        )
        self.fields.append(field)
        size = field.size
        if self.kind in (UNION, UNION_SELECTED):
            self.end = None if size is None or self.end is None else max(self.end, size)
        else:
            self.end = None if size is None or at is None else at + size

    def _place(self, index: int, given: int, align: int) -> int | None:
        if self.kind in (UNION, UNION_SELECTED):
            return given
        if index == 0 or given:
            if given > LARGEST:
                raise Unreadable(f"entry {index} lies at {given}")
            return given
        return None if self.end is None else _align(self.end, align)


def unwrapped(element: Struct | Scalar) -> Struct | Scalar:
    """Return the number in a structure that holds nothing else, named by its type.

    PyPI nvtx wraps numbers so.
    """
    if isinstance(element, Struct) and len(element.fields) == 1 and element.kind == STATIC:
        field = element.fields[0]
        inner = field.element
        if (
            isinstance(inner, Scalar)
            and not field.many
            and not field.jump
            and field.name in (inner.type.name, "value")
        ):
            return inner if element.size == inner.size else element
    return element


def signature(element: Element, depth: int = 0) -> str:
    """Say what a layout holds, for one that has no name: `{x: int32, y: float64[3]}`."""
    if isinstance(element, Text):
        return "string"
    if isinstance(element, Scalar):
        return (element.names.name if element.names else "") or element.type.name
    if depth > 0 and element.name:
        return element.name
    if depth > _SIGNED_DEPTH:
        return "{…}"
    some = [
        f"{field.name}: {signature(field.element, depth + 1)}{_extent(field)}"
        for field in element.fields[:_SIGNED_FIELDS]
    ]
    return "{" + ", ".join([*some, *(["…"] if len(element.fields) > _SIGNED_FIELDS else [])]) + "}"


def _extent(field: Field) -> str:
    return (f"[{field.count}]" if field.count is not None else "[]") if field.many else ""


def predefined(kind: int) -> Scalar | Text | None:
    """Return the element that a payload of a predefined type is made of.

    None if NVTX defines none.
    """
    try:
        element = _Parser(lambda _: None).element(kind, 0) if 0 < kind < STATIC_IDS else None
    except Unreadable:
        return None
    return element if isinstance(element, (Scalar, Text)) else None


def _enumeration(data: Mapping[str, Any]) -> Scalar:
    size = number(data.get("size")) or 0
    if size not in (1, 2, 4, 8):
        raise Unreadable(f"an enumeration of {size} bytes")
    values: dict[int, str] = {}
    flags = False
    entries = data.get("entries")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping):
            value = number(entry.get("value"), _ID)
            if value is not None:
                values[value & (1 << 8 * size) - 1] = text(entry.get("name"))
                flags = flags or bool(entry.get("flag"))
    return Scalar(
        Predefined("enum", f"<u{size}", size),
        size,
        size,
        names=Enumeration(text(data.get("name")), size, values, flags=flags),
    )


def _align(at: int, align: int) -> int:
    return -(-at // align) * align if align > 1 else at


@dataclass(frozen=True)
class Leaf:
    """One number of a structure of fixed size, at its offset.

    `name` is the path to it: `inner.field[2]`.
    """

    name: str
    offset: int
    scalar: Scalar
    flags: int
    semantics: Any


def leaves(struct: Struct, most: int = 4096) -> list[Leaf] | None:
    """Return the numbers of a structure of fixed size; texts and what is pointed to are left out.

    None: not fixed, or too many.
    """
    flat: list[Leaf] = []
    fits = _leaves(struct, "", 0, into=flat, most=most)
    return flat if fits and struct.kind == STATIC else None


def _leaves(struct: Struct, path: str, base: int, into: list[Leaf], most: int) -> bool:
    for field in struct.fields:
        if field.offset is None or (field.count is None and not field.jump):
            return False
        if field.jump or isinstance(field.element, Text):
            continue
        if (field.count or 0) > most:
            return False
        for index in range(field.count or 0):
            name = f"{path}{field.name}[{index}]" if field.many else path + field.name
            at = base + field.offset + index * (field.element.size or 0)
            if isinstance(field.element, Scalar):
                into.append(Leaf(name, at, field.element, flags=field.flags, semantics=field.semantics))
            elif field.element.kind != STATIC or not _leaves(
                field.element, f"{name}.", at, into=into, most=most
            ):
                return False
            if len(into) > most:
                return False
    return True
