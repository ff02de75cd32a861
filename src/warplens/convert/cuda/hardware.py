"""The tables `devices`, `contexts` and `streams`, from CUPTI, with the names that programs gave through NVTX."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import int32
from warplens.convert.cuda.labels import STREAM_KINDS
from warplens.convert.cuda.place import NOWHERE, CudaPlace
from warplens.spool.definitions import Definition, Definitions
from warplens.spool.wide import WideRecords
from warplens.storage import schema

_MOST = 1 << 16  # records of devices, contexts or streams; more is damage
_NULL_HANDLES = (
    0,
    1,
)  # by which programs name the null stream: of the current context, which is not known here
_NULL = "null"


@dataclass
class Seen:
    """The places of work: (context, device) and (context, stream)."""

    contexts: dict[int, int] = field(default_factory=dict)
    streams: set[tuple[int, int]] = field(default_factory=set)

    def add(self, fields: npt.NDArray[Any]) -> None:
        """Take the places of some records of work."""
        context, stream = fields["context"].astype(np.int64), fields["stream"].astype(np.int64)
        _, first = np.unique(context << 32 | stream & NOWHERE, return_index=True)
        for row in first[:_MOST].tolist():
            self.contexts.setdefault(int(context[row]), int(fields["device"][row]))
            self.streams.add((int(context[row]), int(stream[row])))


class Hardware:
    """The rows of one process.

    What ran says more of streams than CUPTI does, where a recording began late: it counts, too.
    """

    def __init__(
        self, wide: Mapping[str, WideRecords], definitions: Definitions, place: CudaPlace, seen: Seen
    ) -> None:
        self._place = place
        self._seen = seen
        self._devices = {int(row["device"]): row for row in _rows(wide.get("cuda_device"))}
        self._contexts = _merged(_rows(wide.get("cuda_context")), ("context",))
        self._streams = _merged(_rows(wide.get("cuda_stream")), ("context", "stream"))
        self._context_names = _Given.of(
            definitions.of("cuda_context"), _rows(wide.get("cuda_context")), ("context",)
        )
        self._stream_names = _Given.of(
            definitions.of("cuda_stream"), _rows(wide.get("cuda_stream")), ("context", "stream")
        )

    def devices(self) -> pa.Table:
        """Return the rows of `devices`."""
        strings = self._place.strings
        used = {device for device in self._seen.contexts.values() if device != NOWHERE}
        rows = []
        for device in sorted(self._devices.keys() | used):
            row: dict[str, Any] = {
                "process": self._place.process,
                "device": int32(device),
                "name": f"GPU {device}",
            }
            about = self._devices.get(device)
            if about is not None:
                row |= {"name": strings.get(int(about["name"])) or row["name"], **_about(about)}
            rows.append(row)
        return schema.build("devices", rows)

    def contexts(self) -> pa.Table:
        """Return the rows of `contexts`."""
        rows = []
        for context in sorted({key for (key,) in self._contexts} | self._seen.contexts.keys()):
            about = self._contexts.get((context,), {})
            device, null = about.get("device", NOWHERE), about.get("null_stream", NOWHERE)
            row = {
                "process": self._place.process,
                "context": context,
                "device": int32(self._seen.contexts.get(context, NOWHERE) if device == NOWHERE else device),
                "null_stream": null if null not in (0, NOWHERE) else None,
                "name": self._context_names.get((context,)),
            }
            rows.append(row)
        return schema.build("contexts", rows)

    def streams(self) -> pa.Table:
        """Return the rows of `streams`."""
        rows = []
        for context, stream in sorted(self._streams.keys() | self._seen.streams):
            about = self._streams.get((context, stream), {})
            null = self._contexts.get((context,), {}).get("null_stream") == stream
            kind = STREAM_KINDS.get(about.get("kind", 0)) or (_NULL if null else None)
            name = self._stream_names.get((context, stream)) or (
                self._stream_names.null if kind == _NULL else None
            )
            row = {
                "process": self._place.process,
                "context": context,
                "stream": stream,
                "kind": kind,
                "name": name,
            }
            rows.append(row | {"priority": int32(about["priority"]) if about.get("kind") else None})
        return schema.build("streams", rows)


class _Given:
    """The names of things that programs know by handles, which are used again when a thing is gone."""

    def __init__(self, names: dict[tuple[int, ...], str], null: str | None) -> None:
        self._names, self.null = names, null

    @classmethod
    def of(
        cls, definitions: Iterable[Definition], records: Iterable[Mapping[str, int]], key: tuple[str, ...]
    ) -> _Given:
        """Return the names by `key`: each definition names what had its handle then."""
        lives: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for record in records:
            if record["handle"]:
                lives.setdefault(record["handle"], []).append(
                    (record["start"], tuple(record[name] for name in key))
                )
        names: dict[tuple[int, ...], str] = {}
        null: str | None = None
        for one in definitions:
            handle, name = one.number("identifier") or 0, one.text("name")
            if name and handle in _NULL_HANDLES:
                null = name
            elif name and handle in lives:
                begun = (
                    sorted(life for life in lives[handle] if life[0] <= one.start)
                    or sorted(lives[handle])[:1]
                )
                names[begun[-1][1]] = name
        return cls(names, null)

    def get(self, key: tuple[int, ...]) -> str | None:
        return self._names.get(key)


def _rows(records: WideRecords | None) -> list[dict[str, int]]:
    if records is None:
        return []
    first_rows = records.rows(records.offsets()[:_MOST])
    return [dict(zip(first_rows.dtype.names or (), row, strict=True)) for row in first_rows.tolist()]


def _merged(rows: Iterable[Mapping[str, int]], key: tuple[str, ...]) -> dict[tuple[int, ...], dict[str, int]]:
    """Put what several records say of one thing together: what one does not know is 0 or NOWHERE in it."""
    merged: dict[tuple[int, ...], dict[str, int]] = {}
    for row in rows:
        mine = merged.setdefault(tuple(row[name] for name in key), {})
        mine |= {
            name: value
            for name, value in row.items()
            if value not in (0, NOWHERE) or mine.get(name, NOWHERE) == NOWHERE
        }
    return merged


def _about(row: Mapping[str, int]) -> dict[str, Any]:
    number = uuid.UUID(bytes=b"".join(row[half].to_bytes(8, "little") for half in ("uuid_low", "uuid_high")))
    bus, slot = row["pci_bus"] & 0xFF, row["pci_device"] & 0xFF
    known = row["pci_domain"] or bus or slot
    return {
        "uuid": f"GPU-{number}" if number.int else None,
        "bus": f"{row['pci_domain'] & 0xFFFFFFFF:04x}:{bus:02x}:{slot:02x}.0" if known else None,
        "compute_major": int32(row["major"]),
        "compute_minor": int32(row["minor"]),
        "multiprocessors": int32(row["multiprocessors"]) or None,
        "memory": _int64(row["memory"]) or None,
        "memory_bandwidth": _int64(row["memory_bandwidth"] * 1000) or None,
        "clock": _int64(row["clock"] * 1000) or None,
        "l2_size": _int64(row["l2_size"]) or None,
    }


def _int64(value: int) -> int:
    return min(value, (1 << 63) - 1)
