"""The tables `nvtx_objects` and `nvtx_operations`: named or registered objects, and operations on them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.convert.nvtx.domains import Domains
from warplens.convert.nvtx.payloads import distinct
from warplens.spool.definitions import Definition, Definitions
from warplens.spool.events import OPERATIONS, Events
from warplens.storage import schema

_NO_OBJECTS = ("schema", "enum", "counter", "task")
_LATEST = 1 << 62
# What an operation is done to, by the first word of its name, and the ones that end it.
_TARGETS = {
    "resource": "resource",
    "sync": "sync",
    "heap": "heap",
    "region": "region",
    "permissions": "permissions",
}
_ENDINGS = ("resource_destroy", "sync_destroy", "heap_unregister", "region_unregister", "permissions_destroy")
_TABLE = "nvtx_operations"
_FEW = 64
_MOST_ACTIONS = 1 << 16


@dataclass
class _Object:
    """One row of `nvtx_objects`.

    A thing that is named again keeps its row until it is destroyed.
    """

    key: int
    made: Definition
    start: int
    end: int | None = None


@dataclass
class Objects:
    """The objects and operations of one process."""

    first: int
    process: int
    definitions: Definitions
    domains: Domains
    events: Events
    actions: Mapping[int, str]
    write: Callable[[str, pa.Table], None]
    clock: Callable[[int], int]
    _rows: list[_Object] = field(default_factory=list)
    _at: dict[tuple[str, int, int], list[_Object]] = field(
        default_factory=dict
    )  # kind, domain, id -> its lives in order

    def __post_init__(self) -> None:
        # Destructions come with the slices: a later definition of the same handle opens a new life where one did.
        self._waiting = [one for one in self.definitions.found if one.kind not in _NO_OBJECTS]
        self._waiting.reverse()

    def add(self, rows: int) -> None:
        """Write the operations of the current slice."""
        operations = self.events.table(OPERATIONS)
        start, action, domain, target, value = (
            operations.column(name).to_numpy() for name in ("start", "action", "domain", "object", "value")
        )
        numbers, codes = np.unique(action, return_inverse=True)
        codes = codes.reshape(-1).astype(np.int32)
        codes = np.minimum(codes, _MOST_ACTIONS - 1)  # more is damage
        names = [self.actions.get(number, f"action {number}") for number in numbers[:_MOST_ACTIONS].tolist()]
        kinds = [_TARGETS.get(name.split("_")[0], "") for name in names]
        ends = np.array([name in _ENDINGS for name in names], bool)[codes]
        keys = np.full(rows, -1, np.int64)
        done = 0
        # Between two destructions a handle means one thing: whole blocks are looked up at once.
        for last in [*np.flatnonzero(ends).tolist(), rows - 1]:
            block = slice(done, last + 1)
            if block.stop > block.start:
                self._define(int(start[last]))
                keys[block] = self._look_up(codes[block], kinds, domain[block], target=target[block])
                if ends[last]:
                    self._end(keys[last], int(start[last]))
            done = block.stop
        used, which = np.unique(domain, return_inverse=True)
        columns = {
            "process": operations.column("process"),
            "thread": operations.column("thread"),
            "start": pa.array(start),
            "domain": pa.DictionaryArray.from_arrays(
                pa.array(which.reshape(-1).astype(np.int32), mask=domain == 0),
                pa.array([self.domains.name(number) or "" for number in used.tolist()], pa.string()),
            ),
            "action": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string())),
            "object": pa.array(keys, mask=keys < 0),
            "target": pa.array(target),
            "value": pa.array(value, mask=value == 0),
            "task": operations.column("task"),
        }
        self.write(_TABLE, schema.build(_TABLE, columns))

    def finish(self) -> list[dict[str, Any]]:
        """Return the rows of `nvtx_objects`, after the last slice."""
        self._define(_LATEST)
        return [
            {
                "object": one.key,
                "process": self.process,
                "domain": self.domains.name(one.made.domain),
                "id": one.made.id or None,
                "kind": one.made.kind,
                "identifier": one.made.number("identifier"),
                "name": one.made.text("name"),
                "definition": one.made.json,
                "start": one.start,
                "end": one.end,
            }
            for one in self._rows
        ]

    def _define(self, until: int) -> None:
        while self._waiting and self.clock(min(self._waiting[-1].start, _LATEST)) <= until:
            one = self._waiting.pop()
            number = one.id or one.number("identifier") or 0
            lives = self._at.setdefault((one.kind, one.domain, number), [])
            if lives and lives[-1].end is None:
                lives[-1].made = one
                continue
            lives.append(_Object(self.first + len(self._rows), one, self.clock(min(one.start, _LATEST))))
            self._rows.append(lives[-1])

    def _look_up(self, codes: Any, kinds: list[str], domain: Any, target: Any) -> Any:
        if len(codes) < _FEW:
            whole = zip(codes.tolist(), domain.tolist(), target.tolist(), strict=True)
            return np.array(
                [self._key(kinds[code], where, number) for code, where, number in whole], np.int64
            )
        which, pairs = distinct((domain << 16 | codes.astype(np.uint32)).astype(np.uint32), target)
        return np.array(
            [self._key(kinds[mixed & 0xFFFF], mixed >> 16, number) for mixed, number in pairs], np.int64
        )[which]

    def _key(self, kind: str, domain: int, number: int) -> int:
        lives = self._at.get((kind, domain, number))
        return lives[-1].key if lives else -1

    def _end(self, key: int, when: int) -> None:
        at = bisect_right(self._rows, key, key=lambda one: one.key) - 1
        if key >= 0 and self._rows[at].end is None:
            self._rows[at].end = when
