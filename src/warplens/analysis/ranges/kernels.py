"""Kernels launched in each NVTX range, summed by range, thread and kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.durations import Durations
from warplens.analysis.ranges.projection import LaunchedOperations, containing
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.analysis.gpu.ops import Naming
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_AT_ONCE = 1 << 21  # pairs of range and kernel that are in memory together
_KEYS = ("style", "domain", "message", "process", "thread")


def range_kernels(report: Report, selection: Selection, naming: Naming) -> pa.Table:
    """Return a row per name, style and thread of ranges and kernel launched in them.

    A kernel counts in every range around its launch; one of a graph around its capture.

    Columns: style, domain, message, process, thread (of the ranges), kernel, ranges (how many launched the kernel), and of the kernels
    in ns count, total, median, min, max, stddev (of a sample; 0 for one).
    """
    columns = {"demangled": ["demangled"], "base": ["name"], "mangled": ["mangled", "demangled"]}[naming]
    launches = LaunchedOperations.of(report, ["kernels"], columns, captured=True)
    ranges, first, last = containing(report, selection, launches, columns=_KEYS)
    kernel = _coded([launches.rows.column(name) for name in columns])
    kind = _combined([ranges.column(name) for name in _KEYS])
    if not len(first):
        return _labelled(
            ranges,
            kind,
            kernel,
            figures=pa.table({name: pa.array([], pa.int64()) for name in ("kind", "kernel", *_FIGURES)}),
        )
    kinds, kernels = np.asarray(kind.indices), np.asarray(kernel.indices).astype(np.int64)
    labels = [pa.array([str(number) for number in range(len(coded.dictionary))]) for coded in (kind, kernel)]
    before = _before(launches.thread, kernels)
    occurring: list[tuple[Int64Array, Int64Array]] = []
    ends = np.cumsum(last - first)
    # Portions of ranges with about _AT_ONCE pairs (range, launch) each: the pairs of all ranges may not fit into memory.
    edges = [
        0,
        *np.unique(np.searchsorted(ends, np.arange(_AT_ONCE, ends[-1], _AT_ONCE), side="right")).tolist(),
        len(first),
    ]
    with Durations() as durations:
        for begin, end in pairwise(edges):
            counts = (last - first)[begin:end]
            whose = np.repeat(np.arange(begin, end), counts)
            # Writes out the runs [first, last): first = [4, 9], counts = [2, 3] become [4, 5, 9, 10, 11].
            launch = np.repeat(first[begin:end] - (np.cumsum(counts) - counts), counts) + np.arange(
                counts.sum()
            )
            codes = [kinds[whose], kernels[launch]]
            texts = [
                pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), label)
                for code, label in zip(codes, labels, strict=True)
            ]
            durations.add(
                pa.table(
                    {
                        "start": launches.start[launch],
                        "end": launches.end[launch],
                        "style": pa.nulls(len(launch), pa.string()),
                        "domain": texts[0],
                        "message": texts[1],
                    }
                )
            )
            # A range counts where it first launches the kernel: the launch of it before lies outside.
            opening = before[launch] < first[whose]
            combined = pa.array(
                codes[0][opening] * len(kernel.dictionary) + codes[1][opening]
            ).dictionary_encode()
            occurring.append((np.asarray(combined.dictionary), np.bincount(np.asarray(combined.indices))))
        figures = durations.result()
    numbers = [pc.cast(figures.column(name), pa.int64()) for name in ("domain", "message")]
    places, counts = (np.concatenate(parts) for parts in zip(*occurring, strict=True))
    known, which = np.unique(places, return_inverse=True)
    in_ranges = np.bincount(which, weights=counts).astype(np.int64)
    wanted = np.asarray(numbers[0].to_numpy()) * len(kernel.dictionary) + np.asarray(numbers[1].to_numpy())
    columns_of_kind = {
        "kind": numbers[0],
        "kernel": numbers[1],
        "ranges": in_ranges[np.searchsorted(known, wanted)],
    }
    return _labelled(
        ranges,
        kind,
        kernel,
        figures=pa.table(columns_of_kind | {name: figures.column(name) for name in _FIGURES[1:]}),
    )


_FIGURES = ("ranges", "count", "total", "median", "min", "max", "stddev")


def _before(thread: Int64Array, kernel: Int64Array) -> Int64Array:
    """Return for each launch the one before it of the same kernel on the same thread, -1 for none."""
    order = np.lexsort((kernel, thread))  # stable: launches stay in order
    same = (np.diff(thread[order], prepend=-1) == 0) & (np.diff(kernel[order], prepend=-1) == 0)
    before = np.empty(len(order), np.int64)
    # In sorted order the row above is the launch before; `before[order]` writes it back to the original positions.
    before[order] = np.where(same, np.roll(order, 1), -1)
    return before


def _labelled(
    ranges: pa.Table, kind: pa.DictionaryArray, kernel: pa.DictionaryArray, figures: pa.Table
) -> pa.Table:
    """Put the keys of ranges and the kernels' names in place of their numbers."""
    firsts = pa.array(np.unique(np.asarray(kind.indices), return_index=True)[1])
    keys = ranges.take(firsts.take(figures.column("kind").combine_chunks()))
    names = kernel.dictionary.take(figures.column("kernel").combine_chunks())
    return pa.table(
        {name: keys.column(name) for name in _KEYS}
        | {"kernel": names}
        | {name: figures.column(name) for name in _FIGURES}
    )


def _coded(columns: list[pa.ChunkedArray]) -> pa.DictionaryArray:
    """Return the first value that each row has in dictionary columns.

    Each value is once in the dictionary.
    """
    if len(columns) == 1:
        return columns[0].unify_dictionaries().combine_chunks()
    return (
        pc.coalesce(*(pc.cast(column, pa.string()) for column in columns))
        .combine_chunks()
        .dictionary_encode()
    )


def _combined(columns: list[pa.ChunkedArray]) -> pa.DictionaryArray:
    """Number the combinations of values that there are."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        flat = column.combine_chunks()
        coded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
        codes = np.asarray(pc.fill_null(coded.indices, -1).to_numpy(), np.int64) + 1
        # Mixed radix, one column at a time; 0 stands for null. Encoding again keeps the numbers dense, so they never overflow.
        number = np.asarray(
            pa.array(number * (len(coded.dictionary) + 1) + codes).dictionary_encode().indices, np.int64
        )
    return pa.array(number).dictionary_encode()
