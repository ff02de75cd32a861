"""Overlap of Roles, Warps or Regions inside Kernels.

## What it shows
How long two activities of a block ran at the same time: for example, whether the next tile is
loaded while the current one is computed.

## Columns
- Both (ns): time in which First and Second were active in the same block, summed over all blocks.
- Of First (%), Of Second (%): Both as a share of the time in which First, or Second, was active.
- First (ns), Second (ns): the time in which each was active.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it.
- Kernel: as in intrakernel_sum. First, Second: roles, or the chosen grouping.

## How it is computed
At each moment a warp is in its innermost region, so a region and its nested regions never overlap;
asynchronous regions count as a whole. A role (see intrakernel_roles) or warp is active while it is
in a region that is not a wait. With `:by=tag`, waits count like other regions. If there are very
many tags or warps, the 32 with most time are compared. The pair with the longest overlap comes
first.

## Traps
- Overlap within a block is not everything: two blocks on one SM also hide each other's waits.
- A kernel with one role, or one tag, has no pairs and no rows.
- A region around an asynchronous copy or wgmma shows when it was issued, not how long it ran. Give
  it a token, or check the waits.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.intrakernel.blocks import block_of, pieces
from warplens.analysis.intrakernel.launches import launches, units
from warplens.analysis.intrakernel.roles import is_wait, roles
from warplens.analysis.intrakernel.together import pairs, states
from warplens.errors import MissingData
from warplens.stats.base import noted, one_of
from warplens.stats.intrakernel import located, missing, names

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
BY = ("role", "tag", "warp")
_MOST = 32


def table(report: Report, selection: Selection, *, by: str = "role") -> pa.Table:
    """Return the pairs; raises MissingData if no kernel recorded two things that could overlap.

    Args:
        report: the report.
        selection: the part to use.
        by: items to compare: `role`, `tag` or `warp`.
    """
    one_of("by", by, BY)
    recorded = launches(report, selection)
    warps = units(report, recorded)
    known = roles(report, recorded, warps)
    number, group_of = len(recorded.groups), recorded.group[warps.launch]
    labels: list[list[str]] = [[] for _ in range(number)]
    of_unit = np.full(len(warps.id), -1, np.int64)
    if by == "tag":
        spent: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for (group, _), totals in zip(known.names, known.tags, strict=True):
            for tag, total in totals.items():
                spent[group][tag] += total
        labels = [
            sorted(spent[group], key=lambda tag: (-spent[group][tag], tag))[:_MOST] for group in range(number)
        ]
    elif by == "role":
        for at, (group, name) in enumerate(known.names):
            if len(labels[group]) < _MOST:
                of_unit[known.of == at] = len(labels[group])
                labels[group].append(name)
    else:
        for group in range(number):
            mine = np.flatnonzero((group_of == group) & (known.of >= 0))
            numbers = np.unique(warps.warp[mine])[:_MOST]
            place = np.searchsorted(numbers, warps.warp[mine])
            of_unit[mine] = np.where(place < len(numbers), place, -1)
            labels[group] = [f"warp {warp}" for warp in numbers.tolist()]
    width = max(map(len, labels), default=0)
    if width < 2:
        raise MissingData(
            f"does not contain two {by}s in one kernel that could overlap{selection.place(report)}."
        )
    sums = np.zeros((number, width, width))
    tags: list[str] = []
    block = block_of(warps)
    for piece in pieces(report, recorded, warps, tags=tags):
        if by == "tag":
            places = np.full((number, len(tags)), -1, np.int64)
            for group, texts in enumerate(labels):
                places[group] = [texts.index(tag) if tag in texts else -1 for tag in tags]
            key = places[group_of[piece.unit], piece.tag]
        else:
            waits = np.array([is_wait(tag) for tag in tags], bool)
            key = np.where(waits[piece.tag], -1, of_unit[piece.unit])
        sums += pairs(states(piece, key, width, block=block, group=group_of), number)
    rows = [
        (group, sums[group, a, b], sums[group, a, a], sums[group, b, b], labels[group][a], labels[group][b])
        for group in range(number)
        for a in range(len(labels[group]))
        for b in range(a + 1, len(labels[group]))
        if sums[group, a, a] and sums[group, b, b]
    ]
    rows.sort(key=lambda row: (row[0], -row[1], row[4:]))
    of, both, first, second = (np.array([row[column] for row in rows], np.int64) for column in range(4))
    columns = {
        "Both (ns)": pa.array(both),
        "Of First (%)": pa.array(100.0 * both / np.maximum(first, 1)),
        "Of Second (%)": pa.array(100.0 * both / np.maximum(second, 1)),
        "First (ns)": pa.array(first),
        "Second (ns)": pa.array(second),
        **located(report, recorded, of),
        "Kernel": names(recorded, of),
        "First": pa.array([row[4] for row in rows], pa.string()),
        "Second": pa.array([row[5] for row in rows], pa.string()),
    }
    return noted(pa.table(columns), missing(recorded))
