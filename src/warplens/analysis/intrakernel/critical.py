"""Finds the role of a kernel that the others wait for: times of work, waits, and work while others wait."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intrakernel.blocks import block_of, pieces
from warplens.analysis.intrakernel.roles import WAITS, Roles, is_wait
from warplens.analysis.intrakernel.together import KEYS, awaited, states
from warplens.arrays import Float64Array

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches, Units
    from warplens.analysis.intrakernel.starving import Starving
    from warplens.report.report import Report


@dataclass(frozen=True, eq=False)
class RoleTimes:
    """Of each role, in ns over all blocks.

    `awaited`: it worked while another role waited; `waited_for[a, b]`: `a` worked while `b` waited.

    A role works while any of its warps is in a region that is not a wait, and waits while some are in one that is, and none works.
    """

    work: Float64Array
    wait: Float64Array
    awaited: Float64Array
    waited_for: Float64Array


def role_times(
    report: Report,
    launches: IntrakernelLaunches,
    units: Units,
    roles: Roles,
    *,
    waits: Collection[str] = WAITS,
    starving: Starving | None = None,
) -> RoleTimes:
    """Return how roles spend their time. `starving` is shown the stretches that it asks for."""
    number = len(roles.names)
    within = [roles.within(group) for group in range(len(launches.groups))]
    local = np.zeros(number + 1, np.int64)
    for these in within:
        local[these] = np.arange(len(these))
    most = min(max(map(len, within), default=0), KEYS // 2)
    work, wait, sought, pairs = (
        np.zeros(number),
        np.zeros(number),
        np.zeros(number),
        np.zeros((number, number)),
    )
    tags: list[str] = []
    group_of, block = launches.group[units.launch], block_of(units)
    of_unit = np.where((roles.of >= 0) & (local[roles.of] < most), 2 * local[roles.of], -1)
    for piece in pieces(report, launches, units, tags=tags):
        waiting = np.array([is_wait(tag, waits) for tag in tags], np.int64)
        key = of_unit[piece.unit]
        key = np.where(key >= 0, key + waiting[piece.tag], -1)
        spans = states(piece, key, 2 * most, block=block, group=group_of, stretches=starving is not None)
        works, idles = awaited(spans.active, most)
        for number_of_group in np.unique(spans.group).tolist():
            some, members = (
                np.flatnonzero(spans.group == number_of_group),
                np.array(within[number_of_group][:most], np.int64),
            )
            busy, idle, length = (
                works[some][:, : len(members)],
                idles[some][:, : len(members)],
                spans.length[some].astype(np.float64),
            )
            work[members] += length @ busy
            wait[members] += length @ idle
            others = idle.sum(axis=1, keepdims=True) > idle  # a role does not wait for itself
            sought[members] += length @ (busy & others)
            pairs[np.ix_(members, members)] += (busy * length[:, None]).T @ idle.astype(np.float64)
            if starving is not None:
                starving.see(spans, some, busy, waits=idle, roles=members)
    return RoleTimes(work, wait, sought, waited_for=pairs)
