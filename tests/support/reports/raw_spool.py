"""Reads a spool without warplens: what the page about the format says, and nothing else."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER = struct.Struct("<8sIIII32sQQQII64Q")
CHUNK = struct.Struct("<IBBHQII")
RECORDS, STRINGS, OPEN = 1, 2, 3


@dataclass(frozen=True)
class Record:
    """One record: the kind, its fields as the file names them, and the text of its name (None: no message)."""

    kind: str
    fields: dict[str, int]
    name: str | None
    thread: int


@dataclass
class RawSpool:
    """The contents of one spool file; `open` are the ranges that were open at its end."""

    process: dict[str, Any]
    end_ns: int
    error: int
    dropped: dict[int, int]
    strings: dict[int, str] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    open: list[Record] = field(default_factory=list)

    def names(self, kind: str) -> list[str | None]:
        """The names of the records of one kind, in their order."""
        return [record.name for record in self.records if record.kind == kind]


def read_raw(path: Path) -> RawSpool:
    """Decode one spool file."""
    data = path.read_bytes()
    _, _, first, json_at, json_size, _, _, chunk_end, end_ns, error, _, *dropped = HEADER.unpack_from(data)
    notes = json.loads(data[json_at : json_at + json_size].decode(errors="replace"))
    spool = RawSpool(
        notes["process"], end_ns, error, {number: count for number, count in enumerate(dropped) if count}
    )
    kinds = {layout["id"]: (name, layout["fields"]) for name, layout in notes["records"].items()}
    found: list[tuple[int, int, int]] = []
    at = first
    while at < chunk_end:
        magic, kind, _, stride, size, thread, _ = CHUNK.unpack_from(data, at)
        assert magic == 0x4B484357
        if kind == STRINGS:
            spool.strings.update(_strings(data, at + 64, at + size))
        elif kind in (RECORDS, OPEN):
            for place in range(at + 64, at + size - stride + 1, stride):
                if data[place]:
                    found.append((kind, place, thread))
                elif kind == RECORDS:
                    break
        at += size
    for kind, place, thread in found:
        name, fields = kinds[data[place]]
        values = {
            key: int.from_bytes(data[place + offset : place + offset + int(type_[1:])], "little")
            for key, type_, offset in fields
        }
        text = spool.strings[values["name"]] if values.get("name") else None
        (spool.records if kind == RECORDS else spool.open).append(Record(name, values, text, thread))
    return spool


def _strings(data: bytes, at: int, end: int) -> Iterator[tuple[int, str]]:
    while at + 8 <= end:
        length_plus_1, number = struct.unpack_from("<II", data, at)
        if length_plus_1 == 0:
            return
        yield number, data[at + 8 : at + 7 + length_plus_1].decode(errors="replace")
        at += (length_plus_1 + 14) // 8 * 8


def read_all(directory: Path) -> list[RawSpool]:
    """Every spool of a directory, in the order of their starts."""
    spools = [read_raw(path) for path in directory.glob("*.spool")]
    return sorted(spools, key=lambda spool: spool.process["start_ns"])
