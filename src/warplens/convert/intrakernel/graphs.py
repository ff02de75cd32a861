"""Matches launches with kernels of CUDA graphs.

The launch was noted when the graph was made, or around a replay of it.

A buffer holds what ran last in it, so that of each node of a graph the last run before the buffer was read is meant. Which node that is
say the number of blocks and the length, and the clock where other launches have shown how far it is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.intrakernel import sandwich
from warplens.convert.intrakernel.launches import Launches

_EARLY, _LATE = (
    1_000,
    20_000,
)  # ns by which a kernel may seem to begin before its launch, and to end after it was read
_SLACK = int(2 * sandwich.NOISE) + 64  # ns by which a kernel may seem shorter than what happened in it
_USUAL = 20_000  # ns by which a kernel may be longer than what happened in it, beside a quarter
_MOST = 512  # kernels that are looked at for a launch, the last ones
_AT_ONCE = 1 << 20  # pairs of a launch and a kernel


def match_graphs(launches: Launches, kernels: dict[str, Int64Array], row: Int64Array) -> Int64Array:
    """Return for each launch the row of its kernel.

    `row` where it has one, else that of a kernel of a graph, -1 for none.
    """
    out = row.copy()
    of_graphs = np.flatnonzero(kernels["node"] != 0)
    device = launches.noted["device"].astype(np.int64)
    open_ones = np.flatnonzero(launches.timed & (row < 0) & (device >= 0))
    for one in np.unique(device[open_ones]).tolist() if len(of_graphs) else ():
        mine = open_ones[device[open_ones] == one]
        theirs = of_graphs[kernels["device"][of_graphs] == one]
        launch, kernel = _pairs(launches, kernels, mine, theirs=theirs)
        if len(launch):
            _match_device(launches, kernels, launch, kernel=kernel, device=one, out=out)
    return out


def _pairs(
    launches: Launches, kernels: dict[str, Int64Array], mine: Int64Array, theirs: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return what may belong together: launches, and the last matching kernel of each node."""
    parts = [
        _last_runs(launches, kernels, *some)
        for some in _windows(launches, kernels["start"][theirs], mine, theirs=theirs)
    ]
    launch, kernel = (
        np.concatenate([np.empty(0, np.int64), *(part[side] for part in parts)]) for side in (0, 1)
    )
    exact = kernels["grid"][kernel] == launches.of_read("blocks")[launch]
    hit = np.zeros(len(launches), bool)
    hit[launch[exact]] = True
    kept = exact | ~hit[launch]  # most launches record in every block
    return launch[kept], kernel[kept]


def _windows(
    launches: Launches, start: Int64Array, mine: Int64Array, theirs: Int64Array
) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield pairs of launches and kernels (rows, in order of start) that began between launch and reading."""
    last = np.searchsorted(start, launches.over[mine])  # the next replay begins after it
    first = np.maximum(np.searchsorted(start, launches.launched[mine] - _EARLY), last - _MOST)
    counts = np.maximum(last - first, 0)
    total = np.cumsum(counts)
    if not total.any():
        return
    # Portions of about _AT_ONCE pairs. Within a portion, launch i pairs with the kernels first[i],
    # first[i] + 1, …: number[i] of them.
    cuts = np.searchsorted(total, np.arange(0, int(total[-1]), _AT_ONCE), "right").tolist()
    for begin, end in pairwise([*cuts, len(mine)]):
        number = counts[begin:end]
        within = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        yield np.repeat(mine[begin:end], number), theirs[np.repeat(first[begin:end], number) + within]


def _last_runs(
    launches: Launches, kernels: dict[str, Int64Array], launch: Int64Array, kernel: Int64Array
) -> tuple[Int64Array, Int64Array]:
    span = (launches.of_read("last_ns") - launches.of_read("first_ns"))[launch]
    longer = kernels["end"][kernel] - kernels["start"][kernel] - span
    good = (
        (longer + _SLACK >= 0)
        & (longer <= _USUAL + span // 4)
        & (kernels["end"][kernel] <= launches.over[launch] + _LATE)
    )
    good &= kernels["grid"][kernel] >= launches.of_read("blocks")[launch]
    launch, kernel = launch[good], kernel[good]
    order = np.lexsort((kernels["start"][kernel], kernels["node"][kernel], launch))
    launch, kernel = launch[order], kernel[order]
    node = kernels["node"][kernel]
    last = np.append((launch[1:] != launch[:-1]) | (node[1:] != node[:-1]), True)[: len(launch)]
    return launch[last], kernel[last]


def _match_device(
    launches: Launches,
    kernels: dict[str, Int64Array],
    launch: Int64Array,
    kernel: Int64Array,
    device: int,
    out: Int64Array,
) -> None:
    first, last = launches.of_read("first_ns"), launches.of_read("last_ns")
    low = (
        kernels["start"][kernel]
        - first[launch]
        - sandwich.tick(np.concatenate([first[launch], last[launch]]))
    )
    high = kernels["end"][kernel] - last[launch]
    at = first + (last - first) // 2
    sure = np.flatnonzero((out >= 0) & launches.timed)
    sure = sure[kernels["device"][out[sure]] == device]
    if not len(sure):
        alone = np.bincount(launch, minlength=len(launches))[launch] == 1
        if alone.any():  # of these there is no doubt: they tell how far the clock is off
            out[launch[alone]] = kernel[alone]
            sure = launch[alone]
    if len(sure):
        sure = sure[np.argsort(at[sure], kind="stable")]
        known = out[sure]
        fitted = sandwich.fit(
            at[sure], kernels["start"][known] - first[sure] - 32, kernels["end"][known] - last[sure]
        )
        if fitted.odd.all():
            return
        offset, doubt, _ = sandwich.between(at[launch], at[sure], fitted)
        doubt = doubt + int(sandwich.NOISE)
    else:
        offset, doubt = _agreed(low, high, launch)
    off = np.maximum(np.maximum(low - offset, offset - high), 0)
    fits = np.flatnonzero((off <= doubt) & (out[launch] < 0))
    length = (high - low)[fits]
    fits = fits[np.lexsort((length, off[fits], launch[fits]))]
    chosen, where = np.unique(launch[fits], return_index=True)
    out[chosen] = kernel[fits[where]]


def _agreed(low: Int64Array, high: Int64Array, launch: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the one offset at which most launches find a kernel.

    If that is one launch, or several offsets do, a doubt for none.
    """
    # Each pair of launch and kernel allows the offsets [low, high] between the clocks. A sweep over
    # their edges (+1 at a low, -1 at a high) counts the pairs that allow each offset. [0, 4], [3,
    # 9] and [20, 25] agree best in [3, 4], with 2 pairs: the offset is 3 and the doubt half of the
    # length.
    count = len(low)
    edges = np.concatenate([low, np.maximum(high, low)])
    step = np.repeat([1, -1], count)
    order = np.lexsort((-step, edges))
    at_once = np.cumsum(step[order])
    best = int(at_once.argmax())
    begin, end = int(edges[order[best]]), int(edges[order[best + 1]])
    inside = (low <= begin) & (high >= end)
    agreed = len(np.unique(launch[inside])) > 1 and np.count_nonzero(at_once == at_once[best]) == 1
    nothing = np.zeros(count, np.int64)
    return nothing + (begin + end) // 2, nothing + ((end - begin) // 2 if agreed else -1)
