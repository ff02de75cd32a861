"""GPU Memory Bandwidth.

## What it shows
Rate of copies and memsets in each direction: overall, or over time with `:bins=…`.

## Columns
- Total (MB), Count: data moved in the selected part, in 10^6 bytes, and number of operations.
- While Busy (MB/s): Total divided by the time in which at least one of them ran. Busy (%): that
  time as a share of the selected time.
- Avg (MB/s): Total divided by the whole selected time. Peak (MB/s): the fastest operation of at
  least 64 KB; of any size if none is that large.
- Device Peak (MB/s): peak bandwidth of the device's memory if known, for copies within a device and
  memsets; a copy reads and writes.
- With `:bins=50`, one row for each of 50 equal stretches: Start (ns) since the start of the report,
  Duration (ns), Total (MB), Rate (MB/s).
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.
- Operation: `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`, `[CUDA memcpy Unified …]`, …

## How it is computed
From the rows of `memcpys`, `memsets` and the migrations of `um_events`. The bytes of an operation
are spread evenly over its time, and those inside the selection, or a bin, count there. Busy is a
union: two copies at once count once. The selected time counts once for each GPU in a row.

## Traps
- Small copies cannot be fast: Peak shows what the link can do, While Busy does not.
- Copies of pageable memory are staged by the host, and slow on any link.
- Memory traffic of kernels is not included; gpu_metrics_sum shows it if it was recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.transfers import Moved, in_bins, inside, joined, moved
from warplens.analysis.intervals import covered
from warplens.errors import MissingData, UsageError
from warplens.stats.by import By, Key
from warplens.stats.sums import MEGABYTE

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name
_LARGE = 64 << 10  # bytes from which an operation's speed is that of the link, not of starting it
_WITHIN = ("[CUDA memcpy Device-to-Device]", "[CUDA memset]")


def table(report: Report, selection: Selection, *, by: str = "device", bins: int = 0) -> pa.Table:
    """Return the bandwidth; raises MissingData if nothing was copied or set.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `stream`, `process` or `rank`: one row for each.
        bins: number of equal stretches of time; 0: one row for all of it.
    """
    if not 0 <= bins <= 1_000_000:
        raise UsageError(f"`:bins={bins}` is not a number of bins; use 1 to 1,000,000.")
    apart = By.of(report, by)
    groups: dict[tuple[Key, str], list[Moved]] = {}
    for part in moved(report, selection):
        groups.setdefault((apart.key(part.process, part.device, part.stream), part.operation), []).append(
            part
        )
    if not groups:
        raise MissingData(f"does not contain GPU memory data{selection.place(report)}.")
    window = selection.window(report) or report.span
    keys, operations = [key for key, _ in groups], [operation for _, operation in groups]
    if bins:
        edges = np.linspace(*window, bins + 1)
        amounts = np.concatenate([in_bins(joined(parts), edges) for parts in groups.values()])
        length = np.tile(np.diff(edges), len(groups))
        return pa.table(
            {
                "Start (ns)": np.tile(np.round(edges[:-1] - report.origin), len(groups)).astype(np.int64),
                "Duration (ns)": np.round(length).astype(np.int64),
                "Total (MB)": amounts / MEGABYTE,
                "Rate (MB/s)": _rate(amounts, length),
                **{name: _repeated(column, bins) for name, column in apart.columns(keys).items()},
                "Operation": _repeated(pa.array(operations), bins),
            }
        )
    rows = [_row(parts, window) for parts in groups.values()]
    peaks = [_peak(report, parts) for parts in groups.values()]
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    shown = (
        {"Device Peak (MB/s)": pa.array(peaks, pa.float64())}
        if any(peak is not None for peak in peaks)
        else {}
    )
    return pa.table({**columns, **shown, **apart.columns(keys), "Operation": pa.array(operations)})


def _row(parts: list[Moved], window: tuple[int, int]) -> dict[str, Any]:
    whole, (begin, end) = joined(parts), window
    total = float(inside(whole, begin, end).sum())
    gpus: dict[tuple[int, int | None], list[Moved]] = {}
    for part in parts:
        gpus.setdefault((part.process, part.device), []).append(part)
    busy = sum(
        covered(np.clip(transfers.start, begin, end), np.clip(transfers.end, begin, end))
        for transfers in map(joined, gpus.values())
    )
    length = whole.end - whole.start
    large = (whole.bytes >= _LARGE) & (length > 0)
    some = large if large.any() else length > 0
    return {
        "Total (MB)": total / MEGABYTE,
        "Count": len(whole.start),
        "While Busy (MB/s)": total / busy * 1e9 / MEGABYTE if busy else 0.0,
        "Busy (%)": 100.0 * busy / ((end - begin) * len(gpus)) if end > begin else 0.0,
        "Avg (MB/s)": total / (end - begin) * 1e9 / MEGABYTE if end > begin else 0.0,
        "Peak (MB/s)": float((whole.bytes[some] / length[some]).max()) * 1e9 / MEGABYTE
        if some.any()
        else 0.0,
    }


def _peak(report: Report, parts: list[Moved]) -> float | None:
    """Peak bandwidth of the devices' memory.

    None if it is not known, or not what limits the operation.
    """
    if parts[0].operation not in _WITHIN:
        return None
    known = report.table("devices", ["process", "device", "memory_bandwidth"])
    peaks = {
        (process, device): peak
        for process, device, peak in zip(*(column.to_pylist() for column in known.columns), strict=True)
    }
    limits = [peaks.get(place) for place in {(part.process, part.device) for part in parts}]
    return None if None in limits else sum(peak for peak in limits if peak) / MEGABYTE


def _rate(
    amounts: np.ndarray[Any, np.dtype[np.float64]], length: np.ndarray[Any, np.dtype[np.float64]]
) -> Any:
    return np.where(length > 0, amounts / np.where(length > 0, length, 1.0), 0.0) * 1e9 / MEGABYTE


def _repeated(column: pa.Array, times: int) -> pa.Array:
    return column.take(pa.array(np.repeat(np.arange(len(column)), times)))
