"""Which role of a kernel the others wait for: how long each works, waits, and works while others wait."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warpline.query.intrakernel.blocks import pieces
from warpline.query.intrakernel.roles import WAITS, Roles, is_wait
from warpline.query.intrakernel.together import Active, Moments, awaited, moments

if TYPE_CHECKING:
    from warpline.query.intrakernel.launches import Launches, Numbers, Units
    from warpline.query.report import Report

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RoleTimes:
    """Of each role, in ns over all blocks. `awaited`: it worked while another role waited; `waited_for[a, b]`: `a` worked while `b` waited.

    A role works while any of its warps is in a region that is no wait, and waits while some are in one that is, and none works.
    """

    work: Floats
    wait: Floats
    awaited: Floats
    waited_for: Floats


def role_times(
    report: Report,
    launches: Launches,
    units: Units,
    roles: Roles,
    *,
    waits: Collection[str] = WAITS,
    watch: Callable[[Moments, Active, Active, Numbers, int], None] | None = None,
) -> RoleTimes:
    """Return how roles spend their time.

    `watch` is shown the stretches of each group of launches, which roles work and wait in them (a column each), the places of these
    roles, and the group.
    """
    number = len(roles.names)
    within = [roles.within(group) for group in range(len(launches.groups))]
    local = np.zeros(number + 1, np.int64)
    for these in within:
        local[these] = np.arange(len(these))
    most = max(map(len, within), default=0)
    work, wait, sought, pairs = np.zeros(number), np.zeros(number), np.zeros(number), np.zeros((number, number))
    tags: list[str] = []
    group_of = launches.group[units.launch]
    for piece in pieces(report, launches, units, tags):
        waiting = np.array([is_wait(tag, waits) for tag in tags], np.int64)
        role = roles.of[piece.unit]
        found = moments(piece, np.where(role >= 0, 2 * local[role] + waiting[piece.tag], -1), 2 * most)
        works, idles = awaited(found, most)
        group = group_of[found.unit]
        for one in np.unique(group).tolist():
            some, members = np.flatnonzero(group == one), np.array(within[one], np.int64)
            busy, idle, length = works[some][:, : len(members)], idles[some][:, : len(members)], found.length[some].astype(np.float64)
            work[members] += length @ busy
            wait[members] += length @ idle
            others = idle.sum(axis=1, keepdims=True) > idle  # a role does not wait for itself
            sought[members] += length @ (busy & others)
            pairs[np.ix_(members, members)] += (busy * length[:, None]).T @ idle.astype(np.float64)
            if watch is not None:
                part = Moments(found.unit[some], found.start[some], found.length[some], found.active[some])
                watch(part, busy, idle, members, one)
    return RoleTimes(work, wait, sought, pairs)
