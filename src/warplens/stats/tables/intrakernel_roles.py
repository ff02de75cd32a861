"""Roles of Warps inside Kernels, and the Critical One.

## What it shows
How long each role of a warp-specialised kernel works and waits, and which role the others wait for.

## Columns
- Work (%), Work (ns): time in which any warp of the role was in a region that is not a wait; the
  percentage is of the time of all blocks.
- Wait (%), Wait (ns): time in which warps of the role waited and none of them worked.
- Awaited (%), Awaited (ns): time in which the role worked while another one waited; empty if no
  region is a wait.
- Waits For: the role that worked during most of this role's waits.
- Critical: `yes` for the role that the kernel's other roles wait for longest. Making it faster
  helps most.
- Units: warps of the role, over all blocks.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it.
- Kernel: as in intrakernel_sum. Role: warps that record the same tags have one role, named by their
  numbers; tags with a slash name it (`producer/load`).

## How it is computed
At each moment a warp is in its innermost region. Blocks are evaluated one by one, over all their
warps, and summed. A region is a wait if a word of its name is one of `:waits=`. Time outside all
regions is neither work nor wait.

## Traps
- Without regions around the waits (`mbarrier.wait`, pipeline acquire) no role waits here, and none
  is critical.
- An awaited role may itself wait for memory inside its regions: examine its work next.
- If all warps do the same, there is one role and nothing to compare.
- A warp that waits for another block, or for memory, does not wait for the role that happens to
  work at that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.intrakernel.balance import ctas
from warplens.analysis.intrakernel.critical import role_times
from warplens.analysis.intrakernel.launches import launches, units
from warplens.analysis.intrakernel.roles import WAITS, is_wait, roles
from warplens.errors import MissingData, UsageError
from warplens.stats.base import noted
from warplens.stats.intrakernel import located, missing, names

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, waits: str = "") -> pa.Table:
    """Return the roles; raises MissingData if no kernel recorded regions.

    Args:
        report: the report.
        selection: the part to use.
        waits: words, joined by `+`, that mark a tag's region as a wait; default: wait, barrier,
            sync, acquire, …
    """
    chosen = tuple(word for word in waits.lower().split("+") if word) if waits else WAITS
    if not chosen:
        raise UsageError(f"`:waits={waits}` has no word; write for example `:waits=wait+full+empty`.")
    recorded = launches(report, selection)
    warps = units(report, recorded)
    known = roles(report, recorded, warps)
    if not known.names:
        raise MissingData(
            f"has launches that recorded inside their kernels, but no regions{selection.place(report)}."
        )
    times = role_times(report, recorded, warps, roles=known, waits=chosen)
    blocks = ctas(warps)
    group = np.array([group for group, _ in known.names], np.int64)
    whole = np.bincount(
        recorded.group[blocks.launch], (blocks.end - blocks.start).astype(np.float64), len(recorded.groups)
    )[group]
    says = np.array([any(is_wait(tag, chosen) for tag in tags) for tags in known.tags], bool)
    can_wait = np.bincount(group, says, len(recorded.groups))[group] > 0
    columns: dict[str, pa.Array] = {}
    for title, values, mask in (
        ("Work", times.work, None),
        ("Wait", times.wait, None),
        ("Awaited", times.awaited, ~can_wait),
    ):
        columns[f"{title} (%)"] = pa.array(100.0 * values / np.maximum(whole, 1), mask=mask)
        columns[f"{title} (ns)"] = pa.array(values.astype(np.int64), mask=mask)
    most = np.zeros(len(recorded.groups))
    np.maximum.at(most, group, times.awaited)
    # waited_for[r, w]: how long role w waited for role r; the greatest of column w is the role that
    # w waits for.
    longest = times.waited_for.argmax(axis=0)
    waits_for = [
        known.names[role][1] if times.waited_for[role, at] > 0 else None
        for at, role in enumerate(longest.tolist())
    ]
    critical = (times.awaited > 0) & (times.awaited == most[group])
    columns |= {
        "Waits For": pa.array(waits_for, pa.string()),
        "Critical": pa.array(["yes" if is_critical else "" for is_critical in critical.tolist()]),
        "Units": pa.array(np.bincount(known.of[known.of >= 0], minlength=len(known.names))),
        **located(report, recorded, group),
        "Kernel": names(recorded, group),
        "Role": pa.array([name for _, name in known.names], pa.string()),
    }
    return noted(pa.table(columns), missing(recorded))
