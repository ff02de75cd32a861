"""Finds the kernel of each launch: the first matching one that its thread launched after the note."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.intrakernel.sandwich import NOISE
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

_LAUNCHES = re.compile(
    r"cu(da)?Launch(?!Host)"
)  # not of graphs: their kernels were launched when they were made
_MOST = 8  # kernels that are looked at for a launch: the program may fill its output first, say
_SLACK = int(2 * NOISE) + 64  # ns by which a kernel may seem shorter than what happened in it


@dataclass
class Candidates:
    """Calls that may be the launch: rows in the order of launches, and of calls within one."""

    launch: Int64Array
    correlation: Int64Array
    outer: Int64Array  # number of the call that it is, or is inside of


def candidates(start: Int64Array, tid: Int64Array, calls: WideRecords, strings: Strings) -> Candidates:
    """Return the calls that each launch may be: those of its thread up to the next one.

    Launches have time and thread, in order of time.
    """
    begins, name = calls.column("start"), calls.column("name")
    used = np.unique(name)
    launching = np.array([bool(_LAUNCHES.match(strings.get(int(text)) or "")) for text in used], bool)
    some = np.flatnonzero(launching[np.searchsorted(used, name)])
    del name
    some = some[begins[some] >= (int(start[0]) if len(start) else 0)]
    begins = begins[some]
    threads, correlation, ends = (
        calls.column("tid")[some],
        calls.column("correlation")[some],
        calls.column("end")[some],
    )
    order = np.argsort(begins, kind="stable")
    begins, threads, correlation, ends = begins[order], threads[order], correlation[order], ends[order]
    parts: list[tuple[Int64Array, ...]] = []
    for thread in np.unique(tid).tolist():
        mine, theirs = np.flatnonzero(tid == thread), np.flatnonzero(threads == thread)
        # The calls of launch i are a run, [edges[i], edges[i + 1]): from its own note to the next
        # note of the thread. The last launch has all that follow. At most _MOST of them are tried.
        edges = np.searchsorted(begins[theirs], np.append(start[mine], np.int64(1 << 62)))
        counts = np.minimum(np.diff(edges), _MOST)
        launch = np.repeat(mine, counts)
        within = np.arange(len(launch)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = np.repeat(edges[:-1], counts) + within
        # A call that begins after all earlier calls have ended is an outermost one. Counting those
        # numbers the outermost calls; calls inside of one share its number.
        reach = np.maximum.accumulate(np.append(0, ends[theirs]))[:-1]
        parts.append((launch, correlation[theirs[at]], np.cumsum(begins[theirs] >= reach)[at]))
    launch, wanted, outer = (
        np.concatenate([np.empty(0, np.int64), *(part[side] for part in parts)]) for side in range(3)
    )
    order = np.argsort(launch, kind="stable")
    return Candidates(launch[order], wanted[order], outer[order])


class Kernels:
    """Collects kernels that may be needed while their table is written.

    Those of `wanted` (correlations; None: all) and of graphs.
    """

    def __init__(self, wanted: Int64Array | None) -> None:
        self._wanted = None if wanted is None else np.unique(wanted)
        self._parts: list[tuple[Any, ...]] = []

    def add(self, kernels: npt.NDArray[Any], ids: Int64Array, apis: Int64Array) -> None:
        """Take records of kernels, their ids and those of their calls (-1: none)."""
        correlation = kernels["correlation"].astype(np.int64)
        asked = np.ones(len(kernels), bool) if self._wanted is None else np.isin(correlation, self._wanted)
        some = np.flatnonzero(asked | (kernels["graph_node"] != 0))
        if len(some):
            rows = kernels[some]
            grid = rows["grid_x"].astype(np.int64) * rows["grid_y"] * rows["grid_z"]
            numbers = (
                rows[name].astype(np.int64)
                for name in ("start", "end", "device", "stream", "name", "graph_node")
            )
            self._parts.append((correlation[some], *numbers, grid, ids[some], apis[some]))

    def table(self) -> dict[str, Int64Array]:
        """Return the kernels in order of start."""
        names = ("correlation", "start", "end", "device", "stream", "name", "node", "grid", "id", "api")
        columns = {
            name: np.concatenate([np.empty(0, np.int64), *(part[number] for part in self._parts)])
            for number, name in enumerate(names)
        }
        order = np.argsort(columns["start"], kind="stable")
        return {name: values[order] for name, values in columns.items()}


def match(
    kernels: dict[str, Int64Array],
    asked: Candidates | None,
    launched: Int64Array,
    over: Int64Array,
    span: Int64Array,
    blocks: Int64Array,
) -> Int64Array:
    """Return for each launch the row of its kernel, -1 for none.

    `launched`, `over`: between these times it ran; `span`: how long units ran, all together; `blocks`: how many there were at least.
    Without calls (`asked` is None) the kernels of the whole process are tried, each for one launch.
    """
    out = np.full(len(launched), -1, np.int64)
    if not len(kernels["start"]) or not len(launched):
        return out
    if asked is None:
        return _by_time(kernels, launched, over, span=span, blocks=blocks, out=out)
    order = np.argsort(kernels["correlation"], kind="stable")
    sought = kernels["correlation"][order]
    place = np.minimum(np.searchsorted(sought, asked.correlation), len(sought) - 1)
    row = order[place]
    good = sought[place] == asked.correlation
    good &= _before_captured(asked, good)
    good &= _can_be(
        kernels,
        row,
        launched[asked.launch],
        over=over[asked.launch],
        span=span[asked.launch],
        blocks=blocks[asked.launch],
    )
    launch, row = asked.launch[good], row[good]
    # Candidates are in order of launch and time, so the first index of each launch is its earliest
    # fitting call.
    first, at = np.unique(launch, return_index=True)
    out[first] = row[at]
    return out


def _before_captured(asked: Candidates, good: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which calls come before one without a kernel.

    That was captured into a graph, and the work after it is another launch.
    """
    # `missing` counts the outermost calls without a kernel before each one. A candidate counts
    # while that number is still the one at the first call of its launch: for good = [T, T, F, T],
    # four calls of one launch, missing is [0, 0, 0, 1], so the fourth drops out.
    new = np.ones(len(good), bool)
    new[1:] = (asked.launch[1:] != asked.launch[:-1]) | (asked.outer[1:] != asked.outer[:-1])
    if not len(new):
        return new
    first = np.flatnonzero(new)
    missing = np.append(0, np.cumsum(~np.logical_or.reduceat(good, first)))
    call = np.cumsum(new) - 1
    begin = call[np.searchsorted(asked.launch, asked.launch)]
    return np.asarray(missing[call] == missing[begin])


def _can_be(
    kernels: dict[str, Int64Array],
    row: Int64Array,
    launched: Int64Array,
    over: Int64Array,
    span: Int64Array,
    blocks: Int64Array,
) -> npt.NDArray[np.bool_]:
    start, end = kernels["start"][row], kernels["end"][row]
    return (
        (end - start + _SLACK >= span)
        & (kernels["grid"][row] >= blocks)
        & (start + 1000 >= launched)
        & (end <= over + 1_000_000)
    )


def _by_time(
    kernels: dict[str, Int64Array],
    launched: Int64Array,
    over: Int64Array,
    span: Int64Array,
    blocks: Int64Array,
    out: Int64Array,
) -> Int64Array:
    taken: set[int] = set()
    for launch in range(len(launched)):
        begin = int(np.searchsorted(kernels["start"], launched[launch] - 1000))
        rows = np.arange(begin, min(begin + _MOST, len(kernels["start"])))
        many = np.full(len(rows), launch)
        for row in rows[
            _can_be(kernels, rows, launched[many], over=over[many], span=span[many], blocks=blocks[many])
        ].tolist():
            if row not in taken:
                taken.add(row)
                out[launch] = row
                break
    return out
