"""Places the warps of kernels that time themselves on the timeline.

Below their kernel's name by SM, block at once, and warp.

Rows are the places where warps run, not the warps: a launch of a million blocks needs no more rows than one that fills the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.timeline.index import columns

LAUNCHES, UNITS, EVENTS = "intrakernel_launches", "intrakernel_units", "intrakernel_events"
NEEDED = {
    LAUNCHES: ("id", "process", "name", "device", "stream", "start"),
    UNITS: ("id", "launch", "cta", "warp", "sm", "start", "end"),
}
SLOTS = (
    256  # blocks of a kernel that one SM has at once: no GPU has more than 32, but damaged times may overlap
)
_ROW = 0xFFFFFFFF
_NAMED = 4096  # blocks up to this number have separate names


class Insides:
    """The places of units.

    A group is what a kernel's name did on a stream; its number is the row of its first launch.

    `sm` of a place is `SM * SLOTS + slot`: blocks that one SM runs at once have different slots.
    """

    def __init__(self, launches: pa.Table, units: pa.Table) -> None:
        self.groups = _groups(launches)
        order = np.argsort(columns.integers(units.column("id"), np.int64), kind="stable")
        column = {name: columns.integers(units.column(name), np.int64)[order] for name in NEEDED[UNITS]}
        self.id, self.launch, self.cta, self.warp = (column[name] for name in ("id", "launch", "cta", "warp"))
        self.group = self._group(self.launch)
        self._block, shown = _blocks(column)
        slots = _slots(self.group[shown], column["sm"][shown], *_spans(column, self._block))
        self.sm = column["sm"] * SLOTS + slots[self._block] if len(shown) else column["sm"] * SLOTS
        self._few = len(self.cta) == 0 or int(self.cta.max()) < _NAMED
        self.shows = np.zeros(len(self.id), bool)  # the warp that stands for its block
        self.shows[shown] = True

    def of_launches(self, ids: Int64Array) -> Int64Array:
        """Return the group of each launch."""
        return self._group(ids)

    def of_units(self, ids: Int64Array) -> dict[str, Int64Array]:
        """Return `inside`, `sm` and `warp` of each unit; -1 if there is no such unit."""
        if not len(self.id):
            return {name: np.full(len(ids), -1, np.int64) for name in ("inside", "sm", "warp")}
        place = np.minimum(np.searchsorted(self.id, ids), len(self.id) - 1)
        known = self.id[place] == ids
        return {
            name: np.where(known, column[place], -1)
            for name, column in (("inside", self.group), ("sm", self.sm), ("warp", self.warp))
        }

    def standing(self, ids: Int64Array) -> npt.NDArray[np.bool_]:
        """Return which of these units stand for their blocks: the one of each that took longest."""
        place = np.minimum(np.searchsorted(self.id, ids), max(len(self.id) - 1, 0))
        return (
            np.asarray(self.shows[place] & (self.id[place] == ids))
            if len(self.id)
            else np.zeros(len(ids), bool)
        )

    def names(self, ctas: Int64Array) -> pa.DictionaryArray:
        """Return the names of blocks: their numbers, where those are few enough for separate names."""
        numbers, codes = np.unique(ctas, return_inverse=True)
        if not self._few:
            numbers, codes = np.array([-1]), np.zeros(len(ctas), np.int64)
        texts = [f"block {number}" if self._few else "block" for number in numbers.tolist()]
        return pa.DictionaryArray.from_arrays(
            codes.reshape(-1).astype(np.int32), pa.array(texts, pa.string())
        )

    def _group(self, launches: Int64Array) -> Int64Array:
        keys = np.array(sorted(self.groups), np.int64)
        if not len(keys):
            return np.full(len(launches), -1, np.int64)
        values = np.array([self.groups[key] for key in keys.tolist()], np.int64)
        place = np.minimum(np.searchsorted(keys, launches), len(keys) - 1)
        return np.where(keys[place] == launches, values[place], -1)


def _groups(launches: pa.Table) -> dict[int, int]:
    """Return the group of each launch by its id: the row of the group's first launch.

    Groups have one process, device, stream and name.
    """
    names = ("id", "process", "device", "stream")
    ids, *keys = (columns.integers(launches.column(name), np.int64).tolist() for name in names)
    texts = launches.column("name").to_pylist()
    first: dict[tuple[Any, ...], int] = {}
    return {
        id_: first.setdefault(key, id_ & _ROW)
        for id_, *key_, text in zip(ids, *keys, texts, strict=True)
        for key in [(*key_, text)]
    }


def _blocks(units: dict[str, Int64Array]) -> tuple[Int64Array, Int64Array]:
    """Return the number of each unit's block, and of each block the unit that took longest."""
    if not len(units["id"]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    length = units["end"] - units["start"]
    # The warps of a block stand together, the longest first, so the first of each group is the unit
    # that stands for the block.
    order = np.lexsort((-length, units["cta"], units["launch"]))
    edge = np.ones(len(order), bool)
    edge[1:] = (np.diff(units["cta"][order]) != 0) | (np.diff(units["launch"][order]) != 0)
    block = np.empty(len(order), np.int64)
    block[order] = np.cumsum(edge) - 1
    return block, order[edge]


def _spans(units: dict[str, Int64Array], block: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return begin and end of each block."""
    count = int(block.max()) + 1 if len(block) else 0
    start, end = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(start, block, units["start"])
    np.maximum.at(end, block, units["end"])
    return start, end


def _slots(group: Int64Array, sm: Int64Array, start: Int64Array, end: Int64Array) -> Int64Array:
    """Return a number for each block: the lowest that no other block of the SM has at the same time."""
    slots = np.zeros(len(group), np.int64)
    taken: dict[tuple[int, int], list[int]] = {}
    order = np.lexsort((start, sm, group))
    sorted_ = [column[order].tolist() for column in (group, sm, start, end)]
    for place, own, on, begin, finish in zip(order.tolist(), *sorted_, strict=True):
        ends = taken.setdefault((own, on), [])
        slot = next((number for number, last in enumerate(ends) if last <= begin), len(ends))
        if slot == len(ends) and slot < SLOTS:
            ends.append(finish)
        slot = min(slot, SLOTS - 1)
        ends[slot] = max(finish, ends[slot])
        slots[place] = slot
    return slots
