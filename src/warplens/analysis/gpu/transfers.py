"""Bytes of copies and memsets, by GPU and direction, and the amount in each stretch of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.ops import MEMORY, during, operations
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection


@dataclass
class Moved:
    """Operations of one kind on one stream of a GPU, as arrays of one length.

    Kind: `[CUDA memcpy Host-to-Device]`; None: no stream.
    """

    process: int
    device: int | None
    stream: int | None
    operation: str
    start: Int64Array
    end: Int64Array
    bytes: Int64Array


def moved(report: Report, selection: Selection) -> list[Moved]:
    """Return copies, memsets and migrations, by process, device, operation and stream.

    Operations keep their whole length.
    """
    text = f"""SELECT process, device, stream, operation, "start", "end", coalesce(bytes, 0) AS bytes FROM {operations(categories=[MEMORY])}
               WHERE {during(report, selection)} ORDER BY process, device, operation, stream, "start" """
    rows = report.sql(text)
    if not rows.num_rows:
        return []
    keys = [
        rows.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        for name in rows.column_names[:4]
    ]
    # Rows are sorted by the four keys: a group ends where any of them changes.
    change = np.zeros(rows.num_rows - 1, bool)
    for key in keys:
        change |= np.diff(np.asarray(key.indices.to_numpy())) != 0
    edges = [0, *(np.flatnonzero(change) + 1).tolist(), rows.num_rows]
    start, end, size = (
        np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("start", "end", "bytes")
    )
    transfers = []
    for begin, finish in pairwise(edges):
        process, device, stream, operation = (key[begin].as_py() for key in keys)
        own = slice(begin, finish)
        transfers.append(
            Moved(
                process,
                device,
                stream,
                operation=operation,
                start=start[own],
                end=np.maximum(end[own], start[own]),
                bytes=size[own],
            )
        )
    return transfers


def joined(parts: list[Moved]) -> Moved:
    """Return several as one, under the first one's name."""
    first = parts[0]
    return replace(
        first,
        start=np.concatenate([part.start for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        bytes=np.concatenate([part.bytes for part in parts]),
    )


def inside(what: Moved, begin: int, end: int) -> Float64Array:
    """Return the bytes of each operation that were moved from `begin` to `end`.

    They move evenly, those without length all at once.
    """
    length = what.end - what.start
    within = np.minimum(what.end, end) - np.maximum(what.start, begin)
    part = np.where(
        length > 0, np.maximum(within, 0) / np.maximum(length, 1), (what.start >= begin) & (what.start < end)
    )
    return np.asarray(what.bytes * part, np.float64)


def in_bins(what: Moved, edges: Float64Array) -> Float64Array:
    """Return the bytes moved between each two edges."""
    length = (what.end - what.start).astype(np.float64)
    lasting = length > 0
    # A copy of 100 bytes from 10 to 20 moves 10 bytes/ns: its rate rises by 10 at 10 and falls by
    # 10 at 20. The running sum of such edges is the rate at each moment, and the integral over
    # that, `lines`, is the number of bytes moved so far. A stretch has the difference at its two
    # edges.
    rate = what.bytes[lasting] / length[lasting]
    times = np.concatenate([what.start[lasting], what.end[lasting]]).astype(np.float64) - edges[0]
    order = np.argsort(times, kind="stable")
    times = times[order]
    rates = np.concatenate([rate, -rate])[order]
    # the sum of rates goes in steps, so what was moved goes in straight lines
    lines = (
        np.concatenate(([0.0], np.cumsum(np.cumsum(rates)[:-1] * np.diff(times))))
        if len(times)
        else np.zeros(0)
    )
    before = np.interp(edges - edges[0], times, lines) if len(times) else np.zeros(len(edges))
    at_once = np.histogram(what.start[~lasting], edges, weights=what.bytes[~lasting].astype(np.float64))[0]
    return np.asarray(np.maximum(np.diff(before), 0.0) + at_once, np.float64)
