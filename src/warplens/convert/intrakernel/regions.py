"""Rows of `intrakernel_units` and `intrakernel_events`, gathered until they are worth a write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.convert.place import ROWS_PER_GROUP
from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoded import Decoded
from warplens.storage import schema

Array = npt.NDArray[Any]
_KINDS = ("region", "mark", "asynchronous")


@dataclass
class Where:
    """The `offset` to add to times, and the edges of the kernel, which no time crosses.

    Of one launch, or of each unit.
    """

    launch: int | Array
    offset: int | Array
    first: int | Array
    last: int | Array
    tags: Mapping[int, str]


@dataclass
class Regions:
    """`first`: the id of the first row of each table; `clock` corrects times of the spool."""

    process: int
    first: int
    write: Callable[[str, pa.Table], None]
    clock: Callable[[Array], Array]
    _units: list[dict[str, Array]] = field(default_factory=list)
    _events: list[dict[str, Array]] = field(default_factory=list)
    _waiting: int = 0
    _unit_rows: int = 0
    _event_rows: int = 0
    _codes: dict[str, int] = field(default_factory=dict)  # of tags

    def add(self, decoded: Decoded, where: Where) -> None:
        """Add one chunk of a launch, or several chunks that were decoded together."""
        units, events = decoded.units, decoded.events
        base = self.first + self._unit_rows
        self._unit_rows += len(units)
        start, end = _times(units, where, slice(None))
        columns = {
            name: units[name].astype(np.int64)
            for name in ("cta", "warp", "sm_begin", "sm_end", "events", "dropped")
        }
        number = np.arange(base, base + len(units), dtype=np.int64)
        launch = np.zeros(len(units), np.int64) + where.launch
        self._units.append(
            {
                **columns,
                "id": number,
                "launch": launch,
                "start": start,
                "end": end,
                "ended": units["ended"].copy(),
            }
        )
        if len(events):
            events = events[_order(events)]
            unit = events["unit"].astype(np.int64)
            start, end = _times(events, where, unit)
            self._events.append(
                {
                    "launch": np.zeros(len(events), np.int64) + _of(where.launch, unit),
                    "unit": base + unit,
                    "start": start,
                    "end": end,
                    "tag": self._tags(events["tag"], where.tags),
                    "flags": events["flags"].copy(),
                    "payload": events["payload"].astype(np.int64),
                }
            )
        self._waiting += len(units) + len(events)
        if self._waiting >= ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write the gathered rows."""
        if self._units:
            self.write("intrakernel_units", self._unit_table(_joined(self._units)))
        if self._events:
            self.write("intrakernel_events", self._event_table(_joined(self._events)))
        self._units, self._events, self._waiting = [], [], 0

    def _tags(self, numbers: Array, names: Mapping[int, str]) -> Array:
        used, which = np.unique(numbers, return_inverse=True)
        codes = [
            self._codes.setdefault(names.get(tag) or f"tag {tag}", len(self._codes)) for tag in used.tolist()
        ]
        return np.array(codes, np.int32)[which.reshape(-1)]

    def _unit_table(self, rows: dict[str, Array]) -> pa.Table:
        return schema.build(
            "intrakernel_units",
            {
                **{name: rows[name] for name in ("id", "launch", "cta", "events", "dropped", "ended")},
                "process": np.full(len(rows["id"]), self.process, np.int64),
                "warp": rows["warp"].astype(np.int32),
                "sm": rows["sm_begin"].astype(np.int32),
                "sm_end": rows["sm_end"].astype(np.int32),
                **{edge: self.clock(rows[edge]) for edge in ("start", "end")},
            },
        )

    def _event_table(self, rows: dict[str, Array]) -> pa.Table:
        count, flags = len(rows["unit"]), rows["flags"]
        first = self.first + self._event_rows
        self._event_rows += count
        kind = np.where(flags & layout.MARK, 1, np.where(flags & layout.ASYNC, 2, 0)).astype(np.int32)
        return schema.build(
            "intrakernel_events",
            {
                "id": np.arange(first, first + count, dtype=np.int64),
                "process": np.full(count, self.process, np.int64),
                "launch": rows["launch"],
                "unit": rows["unit"],
                **{edge: self.clock(rows[edge]) for edge in ("start", "end")},
                "tag": pa.DictionaryArray.from_arrays(rows["tag"], pa.array(list(self._codes), pa.string())),
                "kind": pa.DictionaryArray.from_arrays(kind, pa.array(_KINDS, pa.string())),
                "payload": pa.array(rows["payload"], mask=flags & layout.HAS_PAYLOAD == 0),
            },
        )


def _times(rows: Array, where: Where, unit: Array | slice) -> tuple[Array, Array]:
    offset, first, last = (_of(value, unit) for value in (where.offset, where.first, where.last))
    start, end = (np.minimum(np.maximum(rows[edge] + offset, first), last) for edge in ("start", "end"))
    return start, end


def _of(value: int | Array, unit: Array | slice) -> int | Array:
    return value[unit] if isinstance(value, np.ndarray) else value


def _order(events: Array) -> Array:
    """Return rows by unit and start, of those that begin together the longer first."""
    return np.lexsort((-events["end"], events["start"], events["unit"]))


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
