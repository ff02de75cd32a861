"""Shared by rules about the inside of kernels.

Merges findings of several launches, and sums the time behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import covered
from warplens.analysis.intrakernel.balance import Balance, balance, ctas
from warplens.analysis.intrakernel.launches import launches, units
from warplens.arrays import Float64Array
from warplens.errors import MissingData
from warplens.rules.base import Evidence
from warplens.rules.hosts import edges

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches
    from warplens.arrays import Int64Array
    from warplens.report import Report, Selection


def uneven(
    report: Report, selection: Selection, part: Callable[[Balance], Float64Array], least: float
) -> Iterator[tuple[int, IntrakernelLaunches, Balance, Int64Array, Float64Array, Float64Array]]:
    """Yield each kernel (group of launches) that loses `least` percent of its time by a part of its balance's loss.

    With it come the launches, their balance, which of them were recorded whole, and of those what they lose in all and by that part.
    Raises MissingData if no launch was recorded whole.
    """
    of = launches(report, selection)
    even = balance(of, ctas(units(report, of)))
    if not even.whole.any():
        raise MissingData(f"contains only some of the blocks of its kernels{selection.place(report)}.")
    lost, own = cut(report, selection, of, costs=even.lost), cut(report, selection, of, costs=part(even))
    span = cut(report, selection, of, costs=even.span.astype(np.float64))
    for group in range(len(of.groups)):
        some = np.flatnonzero(even.whole & (of.group == group))
        if len(some) and own[some].sum() >= 1 and own[some].sum() >= least / 100 * span[some].sum():
            yield group, of, even, some, lost[some], own[some]


def cut(report: Report, selection: Selection, of: IntrakernelLaunches, costs: Float64Array) -> Float64Array:
    """Return what launches cost, ns, of those that reach over an edge of the selection the share inside."""
    begin, end = edges(report, selection)
    inside = np.maximum(np.minimum(of.end, end) - np.maximum(of.start, begin), 0)
    return np.asarray(costs * inside / np.maximum(of.end - of.start, 1), np.float64)


def bounded(
    report: Report, selection: Selection, of: IntrakernelLaunches, some: Int64Array, cost: float
) -> int:
    """Return a cost, ns, of launches: no more than the time in which any of them ran."""
    begin, end = edges(report, selection)
    return min(
        round(cost),
        covered(np.maximum(of.start[some], begin), np.maximum(np.minimum(of.end[some], end), begin)),
    )


def evidence(
    of: IntrakernelLaunches, some: Int64Array, costs: Float64Array, texts: Iterable[str], rows: int
) -> tuple[Evidence, ...]:
    """Return the most expensive of launches; `texts` and `costs` (ns) are of `some`."""
    described = list(texts)
    order = np.lexsort((of.start[some], -costs))[:rows]
    return tuple(
        Evidence(
            table="intrakernel_launches",
            id=int(of.id[some[at]]),
            start=int(of.start[some[at]]),
            end=int(of.end[some[at]]),
            text=described[at],
            process=of.groups[int(of.group[some[at]])][0],
            device=None
            if of.groups[int(of.group[some[at]])][1] < 0
            else of.groups[int(of.group[some[at]])][1],
            values={"cost_ns": round(float(costs[at]))},
        )
        for at in order.tolist()
    )


def subject(of: IntrakernelLaunches, group: int) -> str:
    """Return what a group of launches is called, in words that are the same in the next recording."""
    process, device, name = of.groups[group]
    alike = [key for key in of.groups if key[2] == name]
    where = [f"GPU {device}"] if len({key[1] for key in alike}) > 1 and device >= 0 else []
    if len({key[0] for key in alike}) > 1:
        order = sorted({key[0] for key in of.groups})
        where.append(f"process {order.index(process) + 1}")
    return f"{name} on {' of '.join(where)}" if where else name
