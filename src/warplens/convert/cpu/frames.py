"""The table `frames`, and the column `stack` of the tables whose rows have stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert import texts
from warplens.convert.cpu.natives import ANONYMOUS, Module, Natives, modules
from warplens.convert.place import Place
from warplens.convert.symbols.generated import generated_by
from warplens.convert.symbols.lookup import Symbols
from warplens.convert.words import labelled
from warplens.spool.process import Process
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords
from warplens.storage import schema

NATIVE, PYTHON, KERNEL, TASK = 1, 2, 3, 4
_KINDS = {NATIVE: "native", PYTHON: "python", KERNEL: "kernel", TASK: "task"}
_NOBODY = Process()
_SPARSE = 16  # stacks are looked up in a table, if it is at most this many times longer than the frames


class Frames:
    """The tree of stacks of one process, about which `process` has the facts.

    A stack is the number of its innermost frame.
    """

    def __init__(self, records: WideRecords | None, place: Place, process: Process = _NOBODY) -> None:
        self._records, self._place, self._process = records, place, process
        nothing = np.empty(0, np.int64)
        node, parent = (
            (nothing, nothing) if records is None else (records.column("node"), records.column("parent"))
        )
        kind = nothing if records is None else records.column("domain")
        good = (node > 0) & (kind >= NATIVE) & (kind <= TASK)
        order = np.flatnonzero(good)
        order = order[np.argsort(node[order], kind="stable")]
        first = np.ones(len(order), bool)
        first[1:] = node[order][1:] != node[order][:-1]
        order = order[first]
        self.broken = len(node) - len(order)
        self._node, self._order = node[order], order
        self._table: npt.NDArray[np.bool_] | None = None
        most = int(self._node[-1]) if len(order) else 0
        if most <= _SPARSE * len(order) + (1 << 16):
            self._table = np.zeros(most + 1, bool)
            self._table[self._node] = True
        above = parent[order]
        # Callers are written before what they call, so their numbers are lower: a tree has no cycles.
        known = (above < self._node) & self._known(above)
        self.broken += int((~known & (above != 0)).sum())
        self._parent = np.where(known, above, 0)
        self._kind = kind[order]
        self._names = nothing if records is None else records.column("name")[order]
        self._depth = _depths(np.where(known, np.searchsorted(self._node, above), -1))
        self._lost: list[int] = []  # how many stacks of some rows are not here: several threads add to it

    def __len__(self) -> int:
        return len(self._node)

    @property
    def lost(self) -> int:
        """The number of stacks that rows name and the spool lacks."""
        return sum(self._lost)

    def stacks(self, stack: npt.NDArray[Any]) -> pa.Array:
        """Return the keys of stacks as a column; null for 0 and for those that were not written."""
        numbers = stack.astype(np.int64)
        known = self._known(numbers)
        if lost := int((~known & (numbers != 0)).sum()):
            self._lost.append(lost)
        return pa.array(self._place.first + numbers, mask=~known)

    def name_of(self, stack: int) -> int:
        """Return the string of a stack's innermost frame, which native code has not.

        0 if there is none.
        """
        place = int(np.searchsorted(self._node, stack))
        return int(self._names[place]) if place < len(self._node) and self._node[place] == stack else 0

    def tasks_below(self) -> dict[int, list[int]]:
        """Return the stacks in which tasks were awaited as strings of these, in the order of their appearance."""
        children: dict[int, list[int]] = {}
        rows = np.flatnonzero(self._kind == TASK)
        for parent, name in zip(self._parent[rows].tolist(), self._names[rows].tolist(), strict=True):
            children.setdefault(parent, []).append(name)
        return children

    def tables(self, mapped: WideRecords | None, symbols: Symbols) -> Iterator[pa.Table]:
        """Return the rows of `frames`. `mapped`: the modules that native code is in."""
        if self._records is None:
            return
        place, offsets = self._place, self._records.offsets()[self._order]
        known = modules(mapped, place.strings)
        natives = _natives(self._records, self._order, known, process=self._process, symbols=symbols)
        functions, files = texts.Names(place.strings, texts.named), texts.Names(place.strings, texts.plain)
        for rows in place.groups(len(self)):
            fields = self._records.rows(offsets[rows])
            kind = fields["domain"].astype(np.int64)
            (function,), (file,) = functions.columns(fields["name"]), files.columns(fields["file"])
            line = np.where(kind == NATIVE, natives.line[rows], fields["line"].astype(np.int64))
            address = np.where(fields["module"] != 0, fields["offset"], fields["address"]).astype(np.uint64)
            columns = {
                "frame": pa.array(place.first + self._node[rows]),
                "process": pa.array(np.full(len(fields), place.process, np.int64)),
                "parent": pa.array(place.first + self._parent[rows], mask=self._parent[rows] == 0),
                "depth": pa.array(self._depth[rows]),
                "kind": labelled(kind, _KINDS),
                "function": natives.column(natives.function[rows], function),
                "module": natives.column(natives.module[rows]),
                "file": natives.column(natives.file[rows], file),
                "line": _lines(line),
                "first_line": _lines(fields["first_line"].astype(np.int64)),
                "address": pa.array(address, mask=(kind == PYTHON) | (kind == TASK)),
                "path": natives.column(natives.path[rows]),
                "build_id": natives.column(natives.build_id[rows]),
            }
            yield schema.build("frames", columns)

    def _known(self, numbers: Int64Array) -> npt.NDArray[np.bool_]:
        if self._table is not None:
            inside = (numbers >= 0) & (numbers < len(self._table))
            return inside & self._table[np.where(inside, numbers, 0)]
        place = np.minimum(np.searchsorted(self._node, numbers), max(len(self._node) - 1, 0))
        return self._node[place] == numbers if len(self._node) else np.zeros(len(numbers), bool)


def look_up(wide: Mapping[str, WideRecords], strings: Strings, process: Process, *, symbols: Symbols) -> None:
    """Look up native code of files, of a process that continues, so that `symbols` knows it later."""
    if (records := wide.get("cpu_frame")) is not None:
        known = modules(wide.get("cpu_module"), strings)
        files = {number: one for number, one in known.items() if one.path != ANONYMOUS}
        _natives(records, np.arange(len(records)), files, process=process, symbols=symbols)


def _natives(
    records: WideRecords, order: Int64Array, known: dict[int, Module], process: Process, symbols: Symbols
) -> Natives:
    """Return what is known of the frames in `order` that are native code."""
    natives = Natives(len(order))
    kind = records.column("domain")[order]
    rows = np.flatnonzero((kind == KERNEL) & (records.column("name")[order] == 0))
    if len(rows):
        address, flags = (records.column(name)[order[rows]] for name in ("address", "flags"))
        natives.look_up_kernel(rows, address, flags, process.boot_id, symbols)
    rows = np.flatnonzero(kind == NATIVE)
    if len(rows):
        mine = order[rows]
        module, offset, flags = (records.column(name)[mine] for name in ("module", "offset", "flags"))
        paths = [one.path for one in known.values() if one.path]
        natives.look_up(rows, module, offset, flags, known, symbols, lambda: generated_by(process, paths))
    return natives


def _lines(line: Int64Array) -> pa.Array:
    return pa.array(line.astype(np.int32), mask=(line <= 0) | (line > 0x7FFFFFFF))


def _depths(parent: Int64Array) -> npt.NDArray[np.int32]:
    """Return how many frames are below each, from the rows of their parents.

    -1: none; parents come before them.
    """
    depth = (parent >= 0).astype(np.int32)
    above = parent.copy()
    while (above >= 0).any():
        has = np.flatnonzero(above >= 0)
        # Twice as far each time: what is known of the ancestor counts for all between.
        depth[has], above[has] = depth[has] + depth[above[has]], above[above[has]]
    return depth
