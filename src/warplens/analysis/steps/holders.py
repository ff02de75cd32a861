"""The code that holds memory of tensors: stacks of what is alive at the peak, and of what is never freed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.ops import at
from warplens.analysis.steps.steps import steps
from warplens.arrays import BoolArray, Int64Array
from warplens.errors import MissingData
from warplens.report.columns import as_numbers, integers

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

BEFORE = -2
"""In place of a stack: what was allocated before the recording."""
HELD = """
held AS (
  SELECT *, coalesce(allocated, sum(bytes) OVER (PARTITION BY process, device_type, device ORDER BY "start", id))::BIGINT AS held
  FROM tensor_memory
)"""
"""The allocator's own total if it was recorded, else a running sum of what was taken and released."""
DEVICE = "coalesce(device_type, '?') || coalesce(' ' || device, '')"


def holders(report: Report, selection: Selection) -> Iterator[dict[str, Any]]:
    """Yield process, device (text), stack (-1: not known; BEFORE), at_peak, left, allocations, allocated and steps of each stack.

    `at_peak`: bytes at the highest point of the device within the selection. `left`: bytes that were allocated in the selection and held
    behind its last row. `steps`: in how many training steps those were allocated; None where steps are not known.
    """
    rows = report.sql(
        f"""WITH {HELD} SELECT process, {DEVICE} AS device, "start", address, bytes, held, stack FROM held
            WHERE {at(report, selection)} ORDER BY process, device, "start", id"""
    )
    process = integers(rows, "process")
    codes = rows.column("device").combine_chunks().dictionary_encode()
    device = np.asarray(codes.indices, np.int64)
    edges = np.flatnonzero((np.diff(process, prepend=-1) != 0) | (np.diff(device, prepend=-1) != 0))
    for first, last in pairwise([*edges.tolist(), len(process)]):
        place = {"process": int(process[first]), "device": codes.dictionary[int(device[first])].as_py()}
        own = rows.slice(first, last - first)
        for row in _of_device(own, _step(report, selection, own)):
            yield {**place, **row}


def _of_device(rows: pa.Table, step: Int64Array | None) -> Iterator[dict[str, Any]]:
    size, held, stack = integers(rows, "bytes"), integers(rows, "held"), as_numbers(rows.column("stack"))
    until = _freed(rows.column("address").to_numpy(), size)
    taken = size > 0
    peak = int(np.argmax(held))
    at_peak = taken & (np.arange(len(size)) <= peak) & (until > peak)
    left = taken & (until == len(size))
    for number in np.unique(stack[taken]).tolist():
        own = taken & (stack == number)
        yield {
            "stack": number,
            "at_peak": _sum(size, own & at_peak),
            "left": _sum(size, own & left),
            "allocations": int(own.sum()),
            "allocated": _sum(size, own),
            "steps": None if step is None else len(np.unique(step[own & left & (step >= 0)])),
        }
    before = [int(held[row]) - _sum(size, alive) for row, alive in ((peak, at_peak), (-1, left))]
    if any(before):
        more = {"allocations": 0, "allocated": 0, "steps": None if step is None else 0}
        yield {"stack": BEFORE, "at_peak": before[0], "left": before[1], **more}


def _freed(address: np.ndarray[tuple[int], np.dtype[np.uint64]], size: Int64Array) -> Int64Array:
    """Return for each row the row in which its address is freed; the number of rows if it never is.

    Rows [0x1 +, 0x2 +, 0x1 -] give [2, 3, 3].
    """
    order = np.lexsort((np.arange(len(size)), address))
    until = np.full(len(size), len(size), np.int64)
    same = (address[order[1:]] == address[order[:-1]]) & (size[order[:-1]] > 0)
    until[order[:-1][same]] = order[1:][same]
    return until


def _step(report: Report, selection: Selection, rows: pa.Table) -> Int64Array | None:
    """Return the number of the step at each row, -1 between steps; None where the process has none."""
    try:
        known = steps(report, selection)
    except MissingData:
        return None
    own = np.flatnonzero(integers(known, "process") == rows.column("process")[0].as_py())
    if not len(own):
        return None
    start, end = (integers(known, edge)[own] for edge in ("start", "end"))
    time = integers(rows, "start")
    step = np.searchsorted(start, time, side="right") - 1
    return np.asarray(np.where((step >= 0) & (time < end[step]), step, -1), np.int64)


def _sum(size: Int64Array, chosen: BoolArray) -> int:
    return int(size[chosen].sum())
