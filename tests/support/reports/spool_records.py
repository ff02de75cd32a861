"""A second reader of the spool, in plain Python: what the agent wrote, record by record, for tests that look at the agent alone."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

MAGIC = b"WLSPOOL1"
_CHUNK = struct.Struct("<IBBHQII")
_BLOB = struct.Struct("<IIQQ")
_LETTERS = {"u1": "B", "u2": "<H", "u4": "<I", "u8": "<Q", "i4": "<i", "i8": "<q"}
_NUMBERS: dict[int, tuple[int, str]] = {
    1: (8, "<Q"),
    2: (8, "<q"),
    3: (8, "<d"),
    4: (4, "<I"),
    5: (8, "<q"),
    6: (4, "<f"),
}
RECORDS, STRINGS, OPEN, BLOBS, WIDE = 1, 2, 3, 4, 5


@dataclass
class Blob:
    """One payload: its schema's number, its bytes."""

    schema: int
    data: bytes
    at_end: bool
    cut: bool

    def word(self, offset: int = 0, kind: str = "<Q") -> Any:
        """A number in it."""
        return struct.unpack_from(kind, self.data, offset)[0]

    def text(self, offset: int) -> str:
        """The text that a pointer at `offset` stands for."""
        at = self.word(offset)
        return self.data[at : self.data.index(b"\0", at)].decode()


@dataclass
class Record:
    """One record: its type's name, its fields, and what they stand for."""

    type: str
    fields: dict[str, int]
    name: str | None
    thread: int
    open: bool = False
    number: float | None = None
    blobs: list[Blob] = field(default_factory=list)
    json: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, field_name: str) -> int:
        return self.fields[field_name]


class RawSpool:
    """All records of one spool file, in file order, with `domains` and `dropped` (by slot) beside them."""

    def __init__(self, path: Path) -> None:
        self._data = data = path.read_bytes()
        first, json_offset, json_size = struct.unpack_from("<III", data, 12)
        self.dropped = struct.unpack_from("<64Q", data, 88)
        self.facts = json.loads(data[json_offset : json_offset + json_size])
        self._chunks = list(self._walk(first))
        self._strings = dict(self._read_strings())
        self.records = [*self._read_records(), *self._read_wide()]
        self.domains = {record["domain"]: record.name for record in self.of("domain")}

    def of(self, kind: str, domain: str | Literal[False] | None = False) -> list[Record]:
        """The records of one type (of one domain; None: the default one)."""
        found = [record for record in self.records if record.type == kind]
        return (
            found
            if domain is False
            else [record for record in found if self.domains.get(record["domain"]) == domain]
        )

    def definitions(self, kind: str, domain: str | Literal[False] | None = False) -> list[Record]:
        """The definitions of one kind of object."""
        return [record for record in self.of("define", domain) if record.json["kind"] == kind]

    def text(self, number: int) -> str:
        """A text by its number."""
        return self._strings[number]

    def _walk(self, at: int) -> Iterator[tuple[int, int, int, int, int]]:
        (chunk_end,) = struct.unpack_from("<Q", self._data, 64)
        while at < min(chunk_end, len(self._data)):
            magic, kind, _, stride, size, thread, _ = _CHUNK.unpack_from(self._data, at)
            assert magic == 0x4B484357, hex(at)
            yield at, kind, stride, size, thread
            at += size

    def _read_strings(self) -> Iterator[tuple[int, str]]:
        for at, kind, _, size, _ in self._chunks:
            cursor, end = at + 64, at + size
            while kind == STRINGS and cursor + 8 <= end:
                length, number = struct.unpack_from("<II", self._data, cursor)
                if length == 0:
                    break
                yield number, self._data[cursor + 8 : cursor + 7 + length].decode(errors="replace")
                cursor += (length + 14) // 8 * 8

    def _read_records(self) -> Iterator[Record]:
        kinds = {spec["id"]: (name, spec["fields"]) for name, spec in self.facts["records"].items()}
        slot = self.facts["slot"]["fields"]
        for at, kind, stride, size, thread in self._chunks:
            if kind not in (RECORDS, OPEN):
                continue
            for cursor in range(at + 64, at + size - stride + 1, stride):
                number = self._data[cursor]
                if number == 0 and kind == RECORDS:
                    break
                if number == 0:
                    continue
                name, layout = kinds[number]
                wide = kind == OPEN and stride > 40
                fields = {
                    word: struct.unpack_from(_LETTERS[code], self._data, cursor + offset)[0]
                    for word, code, offset in layout
                }
                fields |= (
                    {w: struct.unpack_from(_LETTERS[c], self._data, cursor + o)[0] for w, c, o in slot}
                    if wide
                    else {}
                )
                if name == "thread_switch":
                    thread = fields["thread"]
                yield self._record(name, fields, fields["thread"] if wide else thread, kind == OPEN)

    def _read_wide(self) -> Iterator[Record]:
        kinds = {spec["id"]: (name, spec["fields"]) for name, spec in self.facts.get("wide", {}).items()}
        for at, kind, stride, size, thread in self._chunks:
            for cursor in range(at + 64, at + size - stride + 1, stride) if kind == WIDE else ():
                if self._data[cursor] == 0:
                    break
                assert self._data[cursor] == self._data[at + 5], hex(cursor)  # the chunk says what it holds
                name, layout = kinds[self._data[cursor]]
                fields = {
                    word: struct.unpack_from(_LETTERS[code], self._data, cursor + offset)[0]
                    for word, code, offset in layout
                }
                yield Record(name, fields, self._strings.get(fields["name"]), thread)

    def _record(self, kind: str, fields: dict[str, int], thread: int, is_open: bool) -> Record:
        record = Record(kind, fields, self._strings.get(fields.get("name", 0)), thread, is_open)
        payload_type = fields.get("flags", 0) & 7
        if kind == "define":
            assert record.name is not None
            record.json = json.loads(record.name)
        if "payload" in fields and payload_type == 7:
            record.blobs = list(self._chain(fields["payload"]))
        elif "payload" in fields and payload_type != 0:
            size, code = _NUMBERS[payload_type]
            record.number = struct.unpack(code, struct.pack("<Q", fields["payload"])[:size])[0]
        return record

    def _chain(self, at: int) -> Iterator[Blob]:
        while at != 0:
            size, flags, schema, following = _BLOB.unpack_from(self._data, at)
            yield Blob(schema, self._data[at + 24 : at + 23 + size], bool(flags & 1), bool(flags & 2))
            at = following


def read_spools(directory: Path) -> list[RawSpool]:
    """Every spool of a run, in the order of their processes' starts."""
    # Some end while their file begins: it has its magic last.
    begun = (path for path in directory.glob("*.spool") if path.read_bytes()[: len(MAGIC)] == MAGIC)
    return sorted((RawSpool(path) for path in begun), key=lambda spool: spool.facts["process"]["start_ns"])
