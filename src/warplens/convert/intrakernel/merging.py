"""Converts the times of launches to the report's clock, device by device.

By their kernels, else by the host's times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.intrakernel import sandwich
from warplens.convert.intrakernel.launches import Launches

NOTHING, KERNEL, NEIGHBOURS, BRACKET, HOST = range(5)
MERGED = {KERNEL: "kernel", NEIGHBOURS: "neighbours", BRACKET: "bracket", HOST: "host"}
_HOST_NS = 2_000  # by which the spool's clock and CLOCK_MONOTONIC may differ
_USUAL_NS = 20_000.0  # from a launch to its kernel, where the GPU was idle


@dataclass
class Merged:
    """Of each launch: the row of its kernel (-1: none), what its times rest on, and the numbers of that."""

    kernel: Int64Array
    how: Int64Array
    offset: Int64Array
    uncertainty: Int64Array
    drift: npt.NDArray[np.float64]
    odd: int = 0  # launches whose kernels were at times that contradict all others
    ticks: dict[int, int] = field(default_factory=dict)  # device -> how fine its clock is, ns


def merge(launches: Launches, kernels: dict[str, Int64Array], kernel: Int64Array) -> Merged:
    """Find the offset of each launch that has times. `kernel`: rows in `kernels`, -1 for none."""
    count = len(launches)
    out = Merged(
        kernel.copy(),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        uncertainty=np.zeros(count, np.int64),
        drift=np.zeros(count),
    )
    device = devices(launches, kernels, kernel)
    timed = launches.timed
    for one in np.unique(device[timed]).tolist():
        mine = np.flatnonzero(timed & (device == one))
        _merge_device(launches, kernels, mine, device=one, out=out)
    return out


def devices(launches: Launches, kernels: dict[str, Int64Array], kernel: Int64Array) -> Int64Array:
    """Return the device of each launch; -1: memory of the host, or not known."""
    return np.where(
        kernel >= 0, np.append(kernels["device"], -1)[kernel], launches.noted["device"].astype(np.int64)
    )


def _merge_device(
    launches: Launches, kernels: dict[str, Int64Array], mine: Int64Array, device: int, out: Merged
) -> None:
    first, last = launches.of_read("first_ns")[mine], launches.of_read("last_ns")[mine]
    step = out.ticks[device] = sandwich.tick(np.concatenate([first, last]))
    at = first + (last - first) // 2
    row = out.kernel[mine]
    sure = row >= 0
    if sure.any():
        known, rows = mine[sure], row[sure]
        low, high = kernels["start"][rows] - first[sure] - step, kernels["end"][rows] - last[sure]
        order = np.argsort(at[sure], kind="stable")
        fitted = sandwich.fit(at[sure][order], low[order], high[order])
        if not fitted.odd.all():
            _take(
                out,
                known[order],
                KERNEL,
                offset=fitted.offset,
                uncertainty=fitted.uncertainty,
                drift=fitted.drift,
            )
            odd = known[order][fitted.odd]
            out.odd += len(odd)
            out.kernel[odd] = -1
            out.how[odd] = NEIGHBOURS
            others = mine[~sure]
            if len(others):
                offset, uncertainty, drift = sandwich.between(at[~sure], at[sure][order], fitted)
                _take(out, others, NEIGHBOURS, offset=offset, uncertainty=uncertainty, drift=drift)
            return
    if device < 0:
        # Interpreters and simulators read CLOCK_MONOTONIC, which is the report's: then there is nothing to find.
        own = (launches.launched[mine] <= first + _HOST_NS) & (launches.over[mine] >= last - _HOST_NS)
        some, nothing = mine[own], np.zeros(int(own.sum()), np.int64)
        _take(
            out, some, HOST, offset=nothing, uncertainty=nothing + _HOST_NS, drift=nothing.astype(np.float64)
        )
        mine, first, last, at = mine[~own], first[~own], last[~own], at[~own]
    low = launches.launched[mine] - first - step
    high = np.maximum(launches.over[mine] - last, low)
    order = np.argsort(at, kind="stable")
    fitted = sandwich.fit(at[order], low[order], high[order])
    # The host may have looked long after: what ran, ran soon after its launch.
    late = np.maximum(fitted.uncertainty - int(_USUAL_NS), 0)
    _take(
        out,
        mine[order],
        BRACKET,
        offset=fitted.offset - late,
        uncertainty=fitted.uncertainty + late,
        drift=fitted.drift,
    )
    out.kernel[mine] = -1


def _take(
    out: Merged,
    rows: Int64Array,
    how: int,
    offset: Int64Array,
    uncertainty: Int64Array,
    drift: npt.NDArray[np.float64],
) -> None:
    out.how[rows], out.offset[rows], out.uncertainty[rows], out.drift[rows] = how, offset, uncertainty, drift
