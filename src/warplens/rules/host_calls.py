"""Calls that make the host wait, and the GPU time lost because of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray, Int64Array
from warplens.errors import MissingData
from warplens.model.words import duration
from warplens.rules.base import Evidence
from warplens.rules.gpus import GpuOperations, together

if TYPE_CHECKING:
    from warplens.report import Report, Selection
    from warplens.rules.idle_time import Held

EMPTY = Cover([], [])
# Calls that return when work that was issued before is done. The driver's are what the runtime's end in.
STREAM_WAITS = ("cudaStreamSynchronize", "cuStreamSynchronize", "hipStreamSynchronize")
DEVICE_WAITS = ("cudaDeviceSynchronize", "cuCtxSynchronize", "hipDeviceSynchronize")
EVENT_WAITS = ("cudaEventSynchronize", "cuEventSynchronize", "hipEventSynchronize")


@dataclass(frozen=True, eq=False)
class HostCalls:
    """API calls, in the order of their begin within a process.

    `place`: the NVTX range around it, or None; -1: not known.
    """

    id: Int64Array
    process: Int64Array
    thread: Int64Array
    start: Int64Array
    end: Int64Array
    device: Int64Array
    bytes: Int64Array
    name: npt.NDArray[np.object_]
    place: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.id)

    def of(self, some: BoolArray) -> HostCalls:
        """Return some of them."""
        return HostCalls(**{name: getattr(self, name)[some] for name in self.__dataclass_fields__})


@dataclass(frozen=True, eq=False)
class Cost:
    """What some calls (`mine`, a mask) cost, ns.

    Of each: how long the host waited in it, how long a GPU did nothing until the next.

    Where copies would be faster (`Slower`), what they would save is part of the latter.
    `claim`: when the host was in those that cost anything: by so much it would be ahead.
    """

    bound: int
    estimate: int
    waited: Int64Array
    idle: Int64Array
    mine: BoolArray
    claim: Cover

    @property
    def each(self) -> Int64Array:
        """What each call is expected to cost, ns."""
        return np.minimum(self.waited, self.idle)


def calls(report: Report, selection: Selection, condition: str, copies: str = "") -> HostCalls:
    """Return the calls `a` that fulfil an SQL condition.

    Calls within one of them (the driver's, of the runtime's) are left out.

    `copies`: a table of copies or memsets; the condition may name its columns, with `m.`, and calls without one are left out.
    A `?` before its name keeps those.
    """
    table = copies.lstrip("?")
    join = f"{'LEFT JOIN' if copies.startswith('?') else 'JOIN'} {table} m ON m.api = a.id" if table else ""
    about = (
        "coalesce(m.device, -1)::BIGINT AS device, coalesce(m.bytes, -1)"
        if table
        else "-1::BIGINT AS device, -1"
    )
    # A call may have several copies; DISTINCT ON keeps one row per call. The sort order is also that of the arrays.
    rows = report.sql(
        f"""SELECT DISTINCT ON (a.process, a."start", a.id)
                   a.id, a.process, a.thread, a."start", a."end", a.name, r.message AS place, {about}::BIGINT AS bytes
            FROM cuda_api a {join} LEFT JOIN nvtx_ranges r ON a."range" = r.id
            WHERE ({condition}) AND {during(report, selection, "a.")} ORDER BY a.process, a."start", a.id"""
    )
    matching = HostCalls(
        **{name: np.asarray(rows.column(name).to_numpy()) for name in HostCalls.__dataclass_fields__}
    )
    return matching.of(~_nested(matching))


@dataclass(frozen=True, eq=False)
class Slower:
    """Copies that block the host and are slow themselves.

    When each GPU (process, device) did nothing but these.

    `share`: of that time that faster memory would save.
    """

    alone: Mapping[tuple[int, int], Cover]
    share: float


def cost(
    host_calls: HostCalls,
    gpus: tuple[GpuOperations, ...],
    mine: BoolArray | None = None,
    *,
    computing: bool = False,
    slower: Slower | None = None,
    held: Held | None = None,
) -> Cost:
    """Return what the calls cost, or (`mine`) some of them.

    A call that makes the host wait lets the GPU run dry later, when the host is too late with the next work: idle time from the start of a
    call to that of the next one is its doing, up to the time that the host waited, since the host would be ahead by just that. The
    estimate is the sum of these. The bound lets what was waited at one call make up for idle time behind any later one.
    `computing`: the call does nothing but wait for the GPU, so that it costs nothing if that has nothing to do. `slower`: the time that
    the GPU itself would save counts instead of idle time where it is more: a GPU that only copies is busy, and yet the host waits for it.
    `held`: idle time that has another cause and does not count.
    """
    mine = np.ones(len(host_calls), bool) if mine is None else mine
    waited, idle = np.zeros(len(host_calls), np.int64), np.zeros(len(host_calls), np.int64)
    bounds, estimates, dry = [0], [0], []
    for gpu in gpus:
        own = np.flatnonzero(
            (host_calls.process == gpu.process)
            & ((host_calls.device == gpu.device) | (host_calls.device < 0))
        )
        if not len(own):
            continue
        start, end, chosen = host_calls.start[own], host_calls.end[own], mine[own]
        # The stretch of a call reaches to the start of the next one; that of the last call to the end of the GPU's work.
        behind = np.append(start[1:], max(gpu.finish, int(start[-1])))
        dried = gpu.idle.without((held or {}).get((gpu.process, gpu.device), EMPTY))
        left = dried.within(start, behind)
        waiting = chosen & (gpu.busy.within(start, end) > 0) if computing else chosen
        spent = np.where(waiting, end - start, 0)
        copying = EMPTY if slower is None else slower.alone.get((gpu.process, gpu.device), EMPTY)
        alone = copying.within(start, behind)
        bounds.append(_made_up(spent, left + alone))
        sooner = (alone * (0 if slower is None else slower.share)).astype(np.int64)
        # One of the two is what holds the program up: the host that launches late, or the copies. Both together would claim time twice.
        if int(np.minimum(spent, sooner).sum()) > int(np.minimum(spent, left).sum()):
            left = sooner
        estimates.append(int(np.minimum(spent, left).sum()))
        if chosen.any():
            for cover in (dried, copying):
                after = np.maximum(cover.start, int(start[chosen][0]))
                dry.append(Cover(after[cover.end > after], cover.end[cover.end > after]))
        # A call without a device touches every GPU of its process; the GPU on which it costs most counts.
        better = np.minimum(spent, left) > np.minimum(waited[own], idle[own])
        waited[own] = np.where(better, spent, waited[own])
        idle[own] = np.where(better, left, idle[own])
    blocked = Cover(host_calls.start[mine], host_calls.end[mine]).total
    bound = min(sum(bounds), together(dry), blocked)
    costly = mine & (np.minimum(waited, idle) > 0)
    claim = Cover(host_calls.start[costly], host_calls.end[costly])
    return Cost(bound, min(max(estimates), bound), waited, idle=idle, mine=mine, claim=claim)


def evidence(host_calls: HostCalls, cost: Cost, most: int) -> tuple[Evidence, ...]:
    """Return the most expensive calls as evidence, the most expensive first."""
    order = np.lexsort((host_calls.start, host_calls.start - host_calls.end, -cost.each, ~cost.mine))[
        : min(most, int(cost.mine.sum()))
    ]
    rows = []
    for place in order.tolist():
        what = f"GPU idle for {duration(int(cost.idle[place]))} after {host_calls.name[place]}"
        values: dict[str, Any] = {"gpu_idle_ns": int(cost.idle[place])}
        if host_calls.bytes[place] >= 0:
            values["bytes"] = int(host_calls.bytes[place])
        rows.append(
            Evidence(
                table="cuda_api",
                id=int(host_calls.id[place]),
                start=int(host_calls.start[place]),
                end=int(host_calls.end[place]),
                text=what,
                process=int(host_calls.process[place]),
                thread=int(host_calls.thread[place]),
                values=values,
            )
        )
    return tuple(rows)


def _made_up(waited: Int64Array, idle: Int64Array) -> int:
    """Return how much idle time can be made up for by waits before it.

    The least, over all moments, of waits before and idle time after.
    """
    # Cut the calls at any moment: idle time before the cut cannot exceed the waits before it, and idle time after it is `after`. The least
    # sum over all cuts is the bound: waited = [5, 0] and idle = [2, 9] give min(0 + 11, 5 + 9, 5 + 0) = 5.
    before = np.concatenate(([0], np.cumsum(waited)))
    after = np.append(np.cumsum(idle[::-1])[::-1], 0)
    return int((before + after).min())


def _nested(host_calls: HostCalls) -> BoolArray:
    """Return which calls lie within an earlier one of their thread."""
    order = np.lexsort((-host_calls.end, host_calls.start, host_calls.thread))
    thread, end = host_calls.thread[order], host_calls.end[order]
    # threads one after the other: what an earlier thread reached must not count for the next
    rank = np.cumsum(np.diff(thread, prepend=thread[:1]) != 0) if len(order) else thread
    low = int(end.min()) if len(order) else 0
    # With ends from 100 to 199, thread 0 has the numbers 0 to 99, thread 1 those from 100 on.
    lifted = (end - low) + rank * (int(end.max()) - low + 1 if len(order) else 0)
    reached = np.maximum.accumulate(np.concatenate(([-1], lifted[:-1]))) if len(order) else lifted
    inside = np.empty(len(order), bool)
    inside[order] = lifted <= reached
    return inside


def needed(report: Report, selection: Selection) -> None:
    """Raise MissingData if no calls of CUDA were recorded."""
    if not report.tables["cuda_api"]:
        raise MissingData(f"does not contain CUDA API data{selection.place(report)}.")


def named(*names: str) -> str:
    """Return the SQL condition for calls of these functions."""
    return f"a.name IN ({', '.join(repr(name) for name in names)})"
