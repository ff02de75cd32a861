"""Reads the fixed head of a spool file, and the record layouts that the file describes."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.errors import SpoolError
from warplens.spool.process import text

MAGIC = b"WLSPOOL1"
CONTROL_MAGIC = b"WLCNTRL1"
VERSION = 3
PAGE = 4096
CLOCKS = ("monotonic", "tsc", "cntvct")

_HEAD = struct.Struct("<8sIIII II QQQ QQQ II 64Q 5Q")
_CONTROL = struct.Struct("<8sII II QQQ QQI")
_EVENT = {"flags": 1, "domain": 2, "name": 4, "start": 8, "end": 8, "payload": 8, "color": 4, "category": 4}
_META = {"domain": 2, "name": 4, "start": 8, "id": 8, "thread": 4, "tid": 4, "category": 4}
_EVENTS = ("range", "start_end", "mark", "sample")
_METAS = ("thread_switch", "thread", "domain", "category", "thread_name", "task_switch", "define")
_ORIGIN = {"id": 8, "parent": 8, "thread": 4, "task": 4}
_OPERATION = {"domain": 2, "start": 8, "object": 8, "value": 8, "action": 4}
_OP = {
    "sequence": "payload",
    "shapes": "color",
    "types": "category",
}  # of an operator, and where a range has it
_OTHERS = ("origin", "operation")
_LARGEST = 4096  # bytes of a record
_BUFFERED = 1  # in the header's flags
_PROCESS = '{"process": '  # how the agent begins its JSON
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Clock:
    """The conversion of the counter to ns: `base_ns + ((counter - t0) * mult >> shift)`."""

    kind: str
    shift: int
    t0: int
    base_ns: int
    mult: int

    def ns(self, counter: int) -> int:
        """Convert a reading of the counter as the agent does."""
        return (
            counter
            if self.kind == "monotonic"
            else self.base_ns + ((counter - self.t0) * self.mult >> self.shift)
        )


@dataclass(frozen=True)
class Head:
    """The file header."""

    first_chunk: int
    json_offset: int
    json_size: int
    clock: Clock
    file_size: int
    chunk_end: int
    end_ns: int
    error: int
    dropped: tuple[int, ...]
    buffered: bool = False  # no space was reserved: the file was up to 100 ms behind
    # ns, 0 = never: when records were dropped first and last
    first_loss_ns: int = 0
    last_loss_ns: int = 0
    # Of a flight recorder: how many records it wrote over, and when the last of them was; of those that were not old enough for that, too
    given_up: int = 0
    given_up_ns: int = 0
    early_ns: int = 0


@dataclass(frozen=True)
class Layouts:
    """Record dtypes by type name, their ids, and the dtype of an open start/end slot."""

    ids: Mapping[str, int]
    dtypes: Mapping[str, np.dtype[Any]]
    slot: np.dtype[Any]
    stride: int
    wide: Mapping[int, tuple[str, np.dtype[Any]]] = field(default_factory=dict)  # those of wide chunks, by id

    def native(self) -> npt.NDArray[np.uint32]:
        """Return the numbers of the native `Layout`, in its order."""
        numbers = [self.stride]
        numbers += [_offset(self.dtypes["range"], name) for name in _EVENT]
        numbers += [
            _offset(self.dtypes["thread_switch"], "thread"),
            _offset(self.dtypes["task_switch"], "id"),
        ]
        numbers += [_offset(self.dtypes["origin"], name) for name in _ORIGIN]
        numbers += [_offset(self.dtypes["operation"], name) for name in ("object", "value", "action")]
        numbers += [
            self.ids[name] for name in (*_EVENTS, "operation", "thread_switch", "task_switch", "origin")
        ]
        numbers.append(self.ids.get("op", 0))
        return np.array(numbers, np.uint32)


def read_head(data: bytes, file: str) -> Head:
    """Read page 0. Raises SpoolError when it is no spool, or a later version's."""
    if len(data) < _HEAD.size:
        raise SpoolError(f"{file} is not a spool: it ends at {len(data)} bytes, within the header")
    fields = _HEAD.unpack_from(data)
    if fields[0] != MAGIC:
        raise SpoolError(f"{file} is not a spool: offset 0 does not hold {MAGIC.decode()}")
    if fields[1] != VERSION:
        raise SpoolError(
            f"{file}: offset 8: version {fields[1]} of the spool format; this warplens reads {VERSION}"
        )
    first, json_offset, json_size = fields[2:5]
    size, chunk_end, end_ns, error = fields[10:14]
    buffered = bool(fields[14] & _BUFFERED)
    return Head(
        first,
        json_offset,
        json_size,
        clock=_clock(fields[5:10]),
        file_size=size,
        chunk_end=chunk_end,
        end_ns=end_ns,
        error=error,
        dropped=fields[15:79],
        buffered=buffered,
        first_loss_ns=fields[79],
        last_loss_ns=fields[80],
        given_up=fields[81],
        given_up_ns=fields[82],
        early_ns=fields[83],
    )


def read_control(data: bytes) -> tuple[Clock, int, int, int] | None:
    """Read the control page: clock, agents started, agents failed, errno of the first failure.

    None when it is none.
    """
    if len(data) < _CONTROL.size:
        return None
    fields = _CONTROL.unpack_from(data)
    return (_clock(fields[3:8]), fields[8], fields[9], fields[10]) if fields[0] == CONTROL_MAGIC else None


def _clock(fields: tuple[int, ...]) -> Clock:
    kind, shift, t0, base_ns, mult = fields
    return Clock(
        CLOCKS[kind] if kind < len(CLOCKS) else "monotonic", min(shift, 63), t0, base_ns=base_ns, mult=mult
    )


@dataclass(frozen=True)
class Description:
    """The JSON behind the header: the facts about the process, the layouts, the names of actions."""

    process: Any
    layouts: Layouts
    actions: Mapping[int, str]


def read_description(data: bytes, file: str, offset: int) -> Description:
    """Read the JSON behind the header. Raises SpoolError: without it no record can be read."""
    text = data.decode("utf-8", errors="replace")
    if text.startswith(_PROCESS):
        try:
            process, end = _DECODER.raw_decode(text, len(_PROCESS))
        except (ValueError, RecursionError):
            end = 0
        if text[end : end + 1] == "," and (known := _of_version("{" + text[end + 1 :])) is not None:
            return Description(process, *known)
    facts = _read_facts(text, file, offset)
    return Description(
        facts.get("process"), read_layouts(facts, file, offset), read_actions(facts.get("actions"))
    )


@lru_cache(maxsize=16)
def _of_version(text: str) -> tuple[Layouts, dict[int, str]] | None:
    """Read what all processes of one agent say alike, once for all of them.

    None if it is broken, or says more about the process.
    """
    try:
        facts = _read_facts(text, "", 0)
        return (
            None if "process" in facts else (read_layouts(facts, "", 0), read_actions(facts.get("actions")))
        )
    except SpoolError:
        return None


def _read_facts(text: str, file: str, offset: int) -> dict[str, Any]:
    try:
        facts = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise SpoolError(
            f"{file}: offset {offset}: the description of the records is broken: {error}"
        ) from error
    if not isinstance(facts, dict):
        raise SpoolError(
            f"{file}: offset {offset}: the description of the records is broken: not a JSON object"
        )
    return facts


def read_layouts(facts: Mapping[str, Any], file: str, offset: int) -> Layouts:
    """Build the dtypes from the file's own description.

    Raises SpoolError when a field this reader needs is missing.
    """
    try:
        records = facts["records"]
        names = (*_EVENTS, *_METAS, *_OTHERS)
        ids = {name: int(records[name]["id"]) for name in names}
        dtypes = {name: _dtype(records[name]["fields"], int(records[name]["size"])) for name in names}
        for name in _EVENTS:
            _need(dtypes[name], _EVENT, name)
            if dtypes[name] != dtypes["range"]:
                raise ValueError(f"{name} differs from range")
        for name in _METAS:
            _need(dtypes[name], _META, name)
        _need(dtypes["origin"], _ORIGIN, "origin")
        _need(dtypes["operation"], _OPERATION, "operation")
        if any(
            _offset(dtypes["operation"], name) != _offset(dtypes["range"], name)
            for name in ("domain", "start")
        ):
            raise ValueError("operation begins unlike range")
        if "op" in records:  # agents of 0.1 have none
            ids["op"] = int(records["op"]["id"])
            dtypes["op"] = _dtype(records["op"]["fields"], int(records["op"]["size"]))
            if any(_offset(dtypes["op"], ours) != _offset(dtypes["range"], its) for ours, its in _OP.items()):
                raise ValueError("op is laid out unlike range")
        stride = dtypes["range"].itemsize
        if any(dtype.itemsize != stride for dtype in dtypes.values()):
            raise ValueError("records differ in size")
        if len(set(ids.values())) != len(ids) or not all(0 < number < 256 for number in ids.values()):
            raise ValueError("type ids are not distinct bytes")
        slot = _dtype([*records["range"]["fields"], *facts["slot"]["fields"]], int(facts["slot"]["size"]))
        _need(slot, {**_EVENT, **_ORIGIN}, "slot")
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise SpoolError(
            f"{file}: offset {offset}: the description of the records is broken: {error!r}"
        ) from error
    return Layouts(ids, dtypes, slot, stride=stride, wide=_read_wide(facts.get("wide")))


def _read_wide(given: Any) -> dict[int, tuple[str, np.dtype[Any]]]:
    """Read the layouts of wide chunks.

    What is broken is left out: its chunks are then of an unknown type.
    """
    types = {}
    for name, one in given.items() if isinstance(given, Mapping) else ():
        try:
            number = int(one["id"])
            dtype = _dtype(one["fields"], int(one["size"]))
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            continue
        if dtype.itemsize % 8 == 0 and 0 < number < 256:
            types[number] = (text(name), dtype)
    return types


def read_actions(facts: Any) -> dict[int, str]:
    """Return the names of the actions of `operation` records."""
    given = facts if isinstance(facts, Mapping) else {}
    return {
        number: text(name)
        for name, number in given.items()
        if isinstance(number, int) and not isinstance(number, bool)
    }


def _dtype(fields: Any, size: int) -> np.dtype[Any]:
    return _known_dtype(tuple((str(name), str(kind), int(offset)) for name, kind, offset in fields), size)


@lru_cache(maxsize=64)  # a run of a thousand processes describes the same layouts a thousand times
def _known_dtype(fields: tuple[tuple[str, str, int], ...], size: int) -> np.dtype[Any]:
    if not 8 <= size <= _LARGEST:
        raise ValueError(f"a record of {size} bytes")
    names, formats, offsets = [], [], []
    for name, kind, offset in fields:
        if not re.fullmatch(r"[ui][1248]|f[48]", kind) or not 0 <= offset <= size - int(kind[1]):
            raise ValueError(f"the field {name} has type {kind} at {offset}")
        names.append(name)
        formats.append(f"<{kind}")
        offsets.append(offset)
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    if _offset(dtype, "type") != 0 or _width(dtype, "type") != 1:
        raise ValueError("a record does not begin with its type")
    return dtype


def _need(dtype: np.dtype[Any], widths: Mapping[str, int], record: str) -> None:
    for name, width in widths.items():
        if _width(dtype, name) != width:
            raise ValueError(f"{record}.{name} is not {width} bytes wide")


def _field(dtype: np.dtype[Any], name: str) -> tuple[Any, ...]:
    return dtype.fields[name] if dtype.fields is not None else ()


def _offset(dtype: np.dtype[Any], name: str) -> int:
    return int(_field(dtype, name)[1])


def _width(dtype: np.dtype[Any], name: str) -> int:
    return int(_field(dtype, name)[0].itemsize)
