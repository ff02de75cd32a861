"""Says which collectives of different ranks are one.

The first way that fits is taken, for each group and operation by itself, and named in the answer:

1. group and sequence number, which frameworks and NCCL count the same on all ranks;
2. group, operation and order, if all ranks that have the group made equally many in the same steps;
3. the number of the step, group, operation and order within the step. Traces that begin at different
   steps are matched so. A step in which ranks made different numbers of them has none.

Sends, receives and all-to-all are matched as well, but they never decide about clocks: their ends need not agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray, Int64Array

BY_SEQUENCE, BY_ORDER = "group and sequence number", "operation and order"
BY_STEP = "step, operation and order"
# Their ends agree on all ranks, up to the latency of the network.
_ENDS_TOGETHER = ("allreduce", "allgather", "reducescatter", "barrier")

_Key = tuple[int, ...]


@dataclass(frozen=True)
class MatchedCollectives:
    """Collectives × ranks: `row` is the row of a rank's part in the table, -1 where it has none.

    `ends_together`: whether all ranks end at once. `how`: way of matching to the number of collectives.
    `unmatched`: rows that belong to none.
    """

    ranks: tuple[int, ...]
    row: Int64Array
    ends_together: BoolArray
    how: dict[str, int]
    unmatched: int


def matched(rows: pa.Table, rank: Int64Array) -> MatchedCollectives:
    """Match the rows of `collectives`. `rank`: of each row, as numbers from 0 without gaps."""
    names, groups = rows.column("name").to_pylist(), rows.column("group").to_pylist()
    sequences = rows.column("sequence").to_pylist()
    steps = rows.column("step").to_pylist() if "step" in rows.column_names else [None] * rows.num_rows
    families: dict[tuple[str, str], list[int]] = {}
    for number, key in enumerate(zip(groups, names, strict=True)):
        families.setdefault(key, []).append(number)
    count = int(rank.max()) + 1 if len(rank) else 0
    how: dict[str, int] = {}
    whole_rows: list[Int64Array] = []
    together: list[bool] = []
    for (_, name), members in families.items():
        way, keys = _keys(
            rank[members], [sequences[number] for number in members], [steps[number] for number in members]
        )
        places: dict[_Key, Int64Array] = {}
        for number, place in zip(members, keys, strict=True):
            if place is not None:
                places.setdefault(place, np.full(count, -1, np.int64))[rank[number]] = number
        whole = [row for _, row in sorted(places.items()) if (row >= 0).sum() > 1]
        whole_rows += whole
        together += [any(word in name.lower().replace("_", "") for word in _ENDS_TOGETHER)] * len(whole)
        how[way] = how.get(way, 0) + len(whole)
    row = np.stack(whole_rows) if whole_rows else np.empty((0, count), np.int64)
    return MatchedCollectives(
        tuple(range(count)),
        row,
        np.array(together, bool),
        how={way: number for way, number in how.items() if number},
        unmatched=rows.num_rows - int((row >= 0).sum()),
    )


def _keys(
    rank: Int64Array, sequences: list[int | None], steps: list[int | None]
) -> tuple[str, Sequence[_Key | None]]:
    """Return how the rows of one group and operation are matched, and a key that the rows of one share."""
    numbered = [number for number in sequences if number is not None]
    if len(numbered) == len(sequences) and _unique(numbered, rank):
        return BY_SEQUENCE, [(number,) for number in numbered]
    places = _order(rank)
    in_steps: dict[int, set[int | None]] = {}
    for one, step in zip(rank.tolist(), steps, strict=True):
        in_steps.setdefault(one, set()).add(step)
    if places and len(set(map(frozenset, in_steps.values()))) == 1:
        return BY_ORDER, [(place,) for place in places]
    if any(step is not None for step in steps):
        return BY_STEP, _order_in_steps(rank, steps)
    return BY_ORDER, [(place,) for place in places] or [None] * len(steps)


def _order_in_steps(rank: Int64Array, steps: list[int | None]) -> list[_Key | None]:
    """Return step and place within it of each row; None where the ranks of the step do not agree."""
    members: dict[int, list[int]] = {}
    for row, step in enumerate(steps):
        if step is not None:
            members.setdefault(step, []).append(row)
    keys: list[_Key | None] = [None] * len(steps)
    for step, own in members.items():
        for row, place in zip(own, _order(rank[own]), strict=False):
            keys[row] = (step, place)
    return keys


def _unique(numbers: list[int], rank: Int64Array) -> bool:
    return len(set(zip(numbers, rank.tolist(), strict=True))) == len(numbers)


def _order(rank: Int64Array) -> list[int]:
    """Return each row's place within its rank; empty where ranks made different numbers of them."""
    counts = np.bincount(rank)
    if len(set(counts[counts > 0].tolist())) != 1:
        return []
    seen: dict[int, int] = {}
    places = []
    for one in rank.tolist():
        places.append(seen.get(one, 0))
        seen[one] = places[-1] + 1
    return places
