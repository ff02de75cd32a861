"""Who came last to each collective, how late, how long the others waited, and what the last one did before.

The transfer of a collective is the least time that any rank spent in it, because the last rank waits for
nobody. What a rank spent beyond that is its wait. Where the skew of the starts is below what the clocks
are known to, nobody is called last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray, Float64Array, Int64Array
from warplens.recipes import ranks
from warplens.recipes.collectives import clocks, matching
from warplens.recipes.collectives.clocks import AlignedClocks
from warplens.recipes.collectives.matching import MatchedCollectives
from warplens.recipes.collectives.reading import BEFORE

_FLOOR_NS = 1_000.0  # ends of one host's ranks agree within some us


@dataclass(frozen=True)
class RankWaits:
    """Sums over the collectives, for each rank. Times are ns.

    `last`: how often it was the last one; `late`: by how much, after the rank before it; `waited`: in
    collectives, for others; `cost`: how long the others waited then. `excess`: cause to ns that it spent
    on that before the collectives to which it came last, beyond the median of the other ranks.
    """

    names: tuple[str, ...]
    last: Int64Array
    late: Float64Array
    waited: Float64Array
    cost: Float64Array
    inside: Float64Array
    excess: dict[str, Float64Array]
    inconclusive: int
    collectives: int
    matched: MatchedCollectives
    clocks: AlignedClocks


def waits(rows: pa.Table) -> RankWaits:
    """Compute who waited for whom from the rows of all ranks."""
    rank, names, hosts = ranks.names_of(rows)
    matched = matching.matched(rows, rank)
    start, end = _laid_out(rows, "start", matched), _laid_out(rows, "end", matched)
    aligned = clocks.aligned(start, end, np.flatnonzero(matched.ends_together), hosts)
    start, end = start - aligned.shift, end - aligned.shift
    inside = end - start
    # Rows are collectives, columns ranks; NaN where a rank took no part. For inside = [9, 4, 6] ms
    # the transfer is 4 ms, and the ranks waited [5, 0, 2] ms. The rank that came last waited least.
    transfer = np.nanmin(inside, axis=1, keepdims=True) if len(inside) else inside
    wait = np.nan_to_num(inside - transfer)
    order = np.sort(np.where(np.isnan(start), -np.inf, start), axis=1)
    # `late`: from the last but one to the last rank; `skew`: from the first to the last.
    late = order[:, -1] - order[:, -2] if len(order) else np.zeros(0)
    last = np.nanargmax(start, axis=1) if len(start) else np.zeros(0, np.int64)
    skew = order[:, -1] - np.nanmin(start, axis=1) if len(order) else np.zeros(0)
    clear = skew > max(2 * (aligned.uncertainty or 0.0), _FLOOR_NS)
    count = len(names)
    cost = np.zeros(count)
    np.add.at(cost, last[clear], wait.sum(axis=1)[clear])
    lateness = np.zeros(count)
    np.add.at(lateness, last[clear], late[clear])
    return RankWaits(
        names,
        last=np.bincount(last[clear], minlength=count),
        late=lateness,
        waited=wait.sum(axis=0),
        cost=cost,
        inside=np.nansum(inside, axis=0),
        excess=_excess(rows, matched, last, clear=clear, count=count),
        inconclusive=int((~clear).sum()),
        collectives=len(clear),
        matched=matched,
        clocks=aligned,
    )


def _laid_out(rows: pa.Table, column: str, matched: MatchedCollectives) -> Float64Array:
    """Return a column as collectives × ranks, relative to its first value; NaN where there is no part."""
    values = rows.column(column).fill_null(0).to_numpy()
    origin = rows.column("start").to_numpy().min() if rows.num_rows else 0
    relative = (values - (origin if column in ("start", "end") else 0)).astype(np.float64)
    return np.where(matched.row >= 0, relative[np.maximum(matched.row, 0)], np.nan)


def _excess(
    rows: pa.Table,
    matched: MatchedCollectives,
    last: Int64Array,
    *,
    clear: BoolArray,
    count: int,
) -> dict[str, Float64Array]:
    result: dict[str, Float64Array] = {}
    for column in rows.column_names:
        if not column.startswith(BEFORE):
            continue
        spent = _laid_out(rows, column, matched)
        beyond = spent - np.nanmedian(spent, axis=1, keepdims=True) if len(spent) else spent
        own = np.take_along_axis(beyond, last[:, None], axis=1)[:, 0]
        total = np.zeros(count)
        np.add.at(total, last[clear], np.nan_to_num(own[clear]))
        result[column.removeprefix(BEFORE)] = total
    return result
