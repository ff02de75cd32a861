"""Shared by stats of regions inside kernels: place of a launch, missing records, accuracy of times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.model.words import counted, was
from warplens.stats.places import places

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches
    from warplens.arrays import Int64Array
    from warplens.report import Report


def located(report: Report, of: IntrakernelLaunches, group: Int64Array) -> dict[str, pa.Array]:
    """Return the columns that say where groups of launches ran, as `places` does.

    None for no rows.
    """
    if not len(group):
        return {}
    keys = [of.groups[at][:2] for at in group.tolist()]
    process = pa.chunked_array([pa.array([process for process, _ in keys], pa.int64())])
    device = pa.chunked_array([pa.array([None if device < 0 else device for _, device in keys], pa.int32())])
    return places(report, process, device)


def names(of: IntrakernelLaunches, group: Int64Array) -> pa.Array:
    """Return what groups of launches are called."""
    return pa.array([of.groups[at][2] for at in group.tolist()], pa.string())


def missing(of: IntrakernelLaunches) -> str:
    """Return a note about what launches could not record; empty if that is nothing."""
    dropped, lost, needed = (
        int(of.dropped.sum()),
        int(of.units_lost.sum()),
        int(of.needed_slots.max(initial=0)),
    )
    parts = (
        [f"{counted(dropped, 'record')} {was(dropped)} dropped (slots={needed} would hold all)"]
        if dropped
        else []
    )
    parts += [f"{counted(lost, 'warp')} found no place in their buffer"] if lost else []
    parts += (
        [f"only every {most}th block was recorded"]
        if (most := int(of.sample_blocks.max(initial=1))) > 1
        else []
    )
    return f"{'; '.join(parts)}." if parts else ""


def exactness(of: IntrakernelLaunches) -> str:
    """Return a note about how well launches are placed in the report.

    Empty if that is not known.
    """
    known = of.uncertainty[of.uncertainty >= 0]
    if not len(known):
        return ""
    typical, worst = int(np.median(known)), int(known.max())
    more = f" (at worst {worst:,} ns)" if worst > typical else ""
    return f"Beside the rest of the report a launch is known to {typical:,} ns{more}, all of it together; lengths do not depend on that."
