"""Shared by rules about copies between the host and GPUs: the rows, and common sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.analysis.gpu.ops import during
from warplens.arrays import Int64Array, positions_in
from warplens.errors import MissingData
from warplens.rules.gpus import COPY, GpuOperations

if TYPE_CHECKING:
    from warplens.report import Report, Selection

USUAL = 2.0  # how much faster page-locked memory is where the report does not show it
_ONE_VALUE = 16  # bytes: a number, or a complex one


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies that leave or enter a GPU, by id."""

    id: Int64Array
    bytes: Int64Array
    kind: npt.NDArray[np.object_]
    pageable: npt.NDArray[np.bool_]
    pinned: npt.NDArray[np.bool_]

    def find(self, ids: Int64Array) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """Return for each id the place of its copy, and whether there is one."""
        return positions_in(self.id, ids)


def moving_copies(report: Report) -> Copies:
    """Return the copies between the host and GPUs, and between GPUs."""
    either = "coalesce(source_kind = '{0}' OR destination_kind = '{0}', false)"
    rows = report.sql(
        f"""SELECT id, bytes, kind, {either.format("Pageable")} AS pageable, {either.format("Pinned")} AS pinned
            FROM memcpys WHERE kind NOT IN ('Device-to-Device', 'Host-to-Host') ORDER BY id"""
    )
    return Copies(**{name: np.asarray(rows.column(name).to_numpy()) for name in rows.column_names})


def rates(
    devices: Sequence[GpuOperations], moved: Copies, direction: str | None, large: int
) -> tuple[float, float | None]:
    """Return bytes per ns of large copies of pageable memory, and of page-locked memory.

    0 and None if there are none.

    `direction`: a kind of copy, None: all; `large`: bytes from which on a copy shows the rate.
    """
    sums = np.zeros((2, 2), np.int64)  # pageable, page-locked: bytes, ns
    for gpu in devices:
        place, mine = of_gpu(gpu, moved, direction)
        if not mine.any():
            continue
        length = gpu.end - gpu.start
        big = mine & (moved.bytes[place] >= large) & (length > 0)
        slow = moved.pageable[place]
        for sum_of, some in zip(sums, (big & slow, big & moved.pinned[place] & ~slow), strict=True):
            sum_of += (int(moved.bytes[place][some].sum()), int(length[some].sum()))
    (slow_bytes, slow_ns), (fast_bytes, fast_ns) = sums.tolist()
    return slow_bytes / slow_ns if slow_ns else 0.0, fast_bytes / fast_ns if fast_ns else None


def of_gpu(
    gpu: GpuOperations, moved: Copies, direction: str | None = None
) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
    """Return for each operation of a GPU the place of its copy, and whether it is one (of a direction)."""
    if not len(moved.id):
        return np.zeros(len(gpu.id), np.int64), np.zeros(len(gpu.id), bool)
    place, known = moved.find(gpu.id)
    mine = (gpu.kind == COPY) & known
    return place, mine if direction is None else mine & np.asarray(moved.kind == direction, bool)[place]


def saved_by_locking(rate: float, locked: float | None) -> float:
    """Return the share of their time that copies of page-locked memory would save.

    By its rate, else `USUAL` times the rate.
    """
    if not rate:
        return 0.0
    return 1 - min(rate / locked, 1) if locked else 1 - 1 / USUAL


def kinds_known(report: Report) -> None:
    """Raise MissingData if the report has copies, and none states the memory it used."""
    rows = report.sql(
        "SELECT count(*) AS number, count(coalesce(source_kind, destination_kind)) AS known FROM memcpys"
    ).to_pylist()[0]
    if rows["number"] and not rows["known"]:
        raise MissingData("does not contain the kinds of memory of its copies.")


def number_of_copies(number: int, what: str) -> str:
    """Return e.g. `1 synchronous copy`, `2,500 synchronous copies`."""
    return f"{number:,} {what} {'copy' if number == 1 else 'copies'}"


def single_values(report: Report, selection: Selection, condition: str) -> str:
    """Return a sentence on how many of the copies bring a single value to the host.

    Empty if none does.
    """
    few = f"m.kind = 'Device-to-Host' AND m.bytes <= {_ONE_VALUE}"
    where = f"({condition}) AND {few} AND {during(report, selection, 'a.')}"
    number = (
        report.sql(f"SELECT count(*) FROM cuda_api a JOIN memcpys m ON m.api = a.id WHERE {where}")
        .column(0)[0]
        .as_py()
    )
    if not number:
        return ""
    return f" {number:,} of them {'brings' if number == 1 else 'bring'} a single value to the host, as tensor.item() does."
