"""Estimates who called whom all the way up, where only direct callers are known.

A function is taken to do the same for every caller: of the time of what it calls, each of its callers gets the part that it has of the
function's own total. So sums by function are exact, and so is what a caller has directly below it unless functions call themselves;
how time is spread over longer stacks is a guess.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST = 50_000  # places of functions in stacks
_LEAST = 1e-6  # of all time: rarer functions get no separate place


@dataclass
class ProfiledFunction:
    """Times in ns: self, total, and the total by caller (its position)."""

    own: int
    total: float
    callers: dict[int, float] = field(default_factory=dict)


@dataclass
class CallTreeNode:
    """A function in a stack.

    `parent`: position of the caller's place, -1 for the outermost one; `own`: ns that ended there.
    """

    function: int
    parent: int
    part: float
    own: int = 0


def places(functions: Sequence[ProfiledFunction], most: int = MOST) -> list[CallTreeNode]:
    """Return the tree, each place behind its caller's.

    The own times of a function's places add up to its own time.
    """
    tree = _grown(functions, most)
    of: dict[int, list[int]] = {}
    for number, place in enumerate(tree):
        of.setdefault(place.function, []).append(number)
    for number in sorted(range(len(functions)), key=lambda each: -functions[each].total):
        if functions[number].own and number not in of:
            above = max(
                (caller for caller in functions[number].callers if caller in of),
                key=functions[number].callers.__getitem__,
                default=-1,
            )
            of[number] = [len(tree)]
            tree.append(CallTreeNode(number, of[above][0] if above >= 0 else -1, 1.0))
    for number, mine in of.items():
        _share(functions[number].own, [tree[place] for place in mine])
    return tree


def _grown(functions: Sequence[ProfiledFunction], most: int) -> list[CallTreeNode]:
    """Grow the tree where most time is, until it has `most` places."""
    callees: list[list[tuple[int, float]]] = [[] for _ in functions]
    for number, function in enumerate(functions):
        for caller, time in function.callers.items():
            if caller != number and time > 0:
                callees[caller].append((number, time))
    least = _LEAST * sum(function.own for function in functions)
    waiting: list[tuple[float, int, int]] = []
    for number, function in enumerate(functions):
        alone = function.total - sum(time for caller, time in function.callers.items() if caller != number)
        if alone > least:
            heapq.heappush(waiting, (-alone, number, -1))
    tree: list[CallTreeNode] = []
    while waiting and len(tree) < most:
        time, number, parent = heapq.heappop(waiting)
        part = min(-time / functions[number].total, 1.0)
        tree.append(CallTreeNode(number, parent, part))
        for callee, spent in callees[number]:
            if spent * part > least and not _is_in(tree, callee, len(tree) - 1):
                heapq.heappush(waiting, (-spent * part, callee, len(tree) - 1))
    return tree


def _is_in(tree: Sequence[CallTreeNode], function: int, at: int) -> bool:
    while at >= 0:
        if tree[at].function == function:
            return True
        at = tree[at].parent
    return False


def _share(own: int, mine: Sequence[CallTreeNode]) -> None:
    """Divide an own time by the parts of the places, to the last ns."""
    every, part, given = sum(place.part for place in mine), 0.0, 0
    for place in mine:
        part += place.part
        upto = own if place is mine[-1] else round(own * part / every)
        place.own, given = upto - given, upto
