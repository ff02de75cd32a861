"""The launches that recorded regions inside their kernels, and their warps (units), as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.analysis.gpu.ops import during
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted
from warplens.report.columns import integers

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_LABEL = "coalesce(name, buffer_name, 'buffer ' || buffer)"


@dataclass(frozen=True, eq=False)
class IntrakernelLaunches:
    """Launches by id, of those that were read.

    `group`: which of `groups` (process, device or -1, name) each belongs to.

    `uncertainty`: ns by which each may be off on the report's clock, as a whole; -1: not known.
    """

    id: Int64Array
    start: Int64Array
    end: Int64Array
    group: Int64Array
    groups: tuple[tuple[int, int, str], ...]
    dropped: Int64Array
    units_lost: Int64Array
    needed_slots: Int64Array
    sample_blocks: Int64Array
    uncertainty: Int64Array

    def __len__(self) -> int:
        return len(self.id)

    def place(self, ids: Int64Array) -> Int64Array:
        """Return the place of each launch here, -1 for those that are not.

        Fast where many rows of one launch come together.
        """
        if not len(ids):
            return np.zeros(0, np.int64)
        first = np.flatnonzero(np.diff(ids, prepend=~ids[0]))
        place = located(self.id, ids[first])
        return np.repeat(place, np.diff(np.append(first, len(ids))))

    def name(self, launch: int) -> str:
        """Return the name of a launch by its place."""
        return self.groups[int(self.group[launch])][2]

    @cached_property
    def window(self) -> tuple[int, int]:
        """From the first begin to the last end, ns."""
        return int(self.start.min()), int(self.end.max()) + 1


@dataclass(frozen=True, eq=False)
class Units:
    """Warps that recorded, by id.

    `launch`: place among the launches; `cta`: linear block; `sm` where it began; `events` that are
    here.
    """

    id: Int64Array
    launch: Int64Array
    cta: Int64Array
    warp: Int64Array
    sm: Int64Array
    start: Int64Array
    end: Int64Array
    events: Int64Array
    dropped: Int64Array

    def place(self, ids: Int64Array) -> Int64Array:
        """Return the place of each unit here, -1 for those that are not.

        Rows of one unit come together.
        """
        if not len(ids):
            return np.zeros(0, np.int64)
        first = np.flatnonzero(np.diff(ids, prepend=~ids[0]))
        return np.repeat(located(self.id, ids[first]), np.diff(np.append(first, len(ids))))


def launches(report: Report, selection: Selection) -> IntrakernelLaunches:
    """Return the launches that overlap the selection.

    Raises MissingData if there are none, or none of them was read.
    """
    if not report.tables["intrakernel_launches"]:  # several rules look
        raise MissingData(f"does not contain in-kernel (warplens.intrakernel) data{selection.place(report)}.")
    rows = report.sql(
        f"""SELECT id, "start", "end", process, coalesce(device, -1)::INTEGER AS device, {_LABEL} AS label, dropped, units_lost,
                   coalesce(needed_slots, 0)::BIGINT AS needed_slots, coalesce(sample_blocks, 1)::BIGINT AS sample_blocks,
                   coalesce(uncertainty, -1)::BIGINT AS uncertainty,
                   stored AND units > 0 AS known
            FROM intrakernel_launches WHERE {during(report, selection)} ORDER BY id"""
    )
    if not rows.num_rows:
        raise MissingData(f"does not contain in-kernel (warplens.intrakernel) data{selection.place(report)}.")
    number = rows.num_rows
    rows = rows.filter(rows.column("known"))
    if not rows.num_rows:
        raise MissingData(
            f"has {counted(number, 'launch')} with regions inside, but none could be read: see its "
            "diagnostics (`warplens info`)."
        )
    keys = list(zip(*(rows.column(name).to_pylist() for name in ("process", "device", "label")), strict=True))
    known: dict[tuple[int, int, str], int] = {}
    group = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    columns = ("id", "start", "end", "dropped", "units_lost", "needed_slots", "sample_blocks", "uncertainty")
    return IntrakernelLaunches(
        group=group, groups=tuple(known), **{name: integers(rows, name) for name in columns}
    )


def units(report: Report, of: IntrakernelLaunches) -> Units:
    """Return the warps of launches."""
    columns = ["id", "launch", "cta", "warp", "sm", "start", "end", "events", "dropped"]
    rows = report.table("intrakernel_units", columns)
    order = np.argsort(integers(rows, "id"), kind="stable")
    values: dict[str, Any] = {name: integers(rows, name)[order] for name in columns}
    values["launch"] = of.place(values["launch"])
    some = values["launch"] >= 0
    if not some.all():
        values = {name: column[some] for name, column in values.items()}
    return Units(**values)


def located(known: Int64Array, ids: Int64Array) -> Int64Array:
    """Return where each id is among those known (sorted), -1 for none."""
    if not len(known):
        return np.full(len(ids), -1, np.int64)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[place] == ids, place, -1)
