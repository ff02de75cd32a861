"""GPU Time by Kind of Work.

## What it shows
What kind of work the GPU's time went to: matrix products, attention, elementwise kernels, communication, copies, …

## Columns
- Time (%): the row's share of the Total Time of the rows of its GPU. Total Time, Avg, Med, Min, Max (ns): of the operations.
- Instances: how many.
- Union (ns): time in which any of them ran. Span (%): that, of the time from the GPU's first to its last operation.
- Host, Rank, PID, Device, Stream: which GPU or stream; each only where the rows differ in it, Stream with `:by=stream`.
- Kind: of kernels the class, by name: gemm, attention, convolution, normalization, softmax, reduction, elementwise, embedding, sort/scan,
  optimizer, memory (kernels that only move data), communication, random, linear algebra (factorizations, solvers), autotuning (XLA tries
  out kernels), other. Else: copy, memset, migration, graph.

## How it is computed
Kernels are classed by their full names, as libraries and compilers give them: cuBLAS, CUTLASS, rocBLAS (gemm); FlashAttention, xFormers,
FlashInfer (attention); cuDNN, MIOpen (convolution); NCCL, RCCL, NVSHMEM, DeepEP (communication); cuSOLVER, MAGMA (linear algebra); CUB,
cuRAND, PyTorch, Inductor, Triton, XLA, vLLM. The table with its sources is `analysis/gpu/kernel_classes.py`.
What reaches over an edge of the selected time counts with the piece inside. Medians of `:by=process` and
`:by=rank` are of all their GPUs. The greatest total comes first, GPU by GPU.

## Traps
- A fused kernel is of one class only: that of the most telling word in its name.
- Kernels of one's own (`scale(float*, int)`) are `other`, unless their names say what they do: a program that is all its own kernels is
  all `other`; of recordings of frameworks and libraries it is never more than a tenth. cuda_gpu_kern_sum has the names.
- Operations of several streams overlap: the totals may exceed the time in which the GPU was busy, Union does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.work import COPY, KINDS, STAGED, gpus
from warplens.analysis.intervals import covered
from warplens.errors import MissingData
from warplens.stats.base import noted
from warplens.stats.by import By, Key, percent
from warplens.stats.launches import whole_graphs

if TYPE_CHECKING:
    from warplens.analysis.gpu.work import WorkTrack
    from warplens.arrays import Int64Array
    from warplens.report import Report, Selection

BY = ("device", "process", "rank", "stream")
DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection, *, by: str = "device") -> pa.Table:
    """Return the breakdown; MissingData where no GPU did anything.

    Args:
        report: the report.
        selection: which part of it.
        by: `device`, `stream`, `process` or `rank`: column that divides the rows.
    """
    apart = By.of(report, by)
    lengths: dict[tuple[Key, str], list[Int64Array]] = {}
    unions: dict[tuple[Key, str], int] = {}
    spans: dict[Key, int] = {}
    for gpu in gpus(report, selection):
        for stream, track in gpu.streams.items() if apart.per_stream else [(None, gpu.merged())]:
            key = apart.key(gpu.process, gpu.device, stream)
            spans[key] = spans.get(key, 0) + int(track.end.max() - track.start[0])
            for kind, part in _parts(track).items():
                lengths.setdefault((key, kind), []).append(part.end - part.start)
                unions[key, kind] = unions.get((key, kind), 0) + covered(part.start, part.end)
    if not spans:
        raise MissingData(f"does not contain CUDA kernel or GPU memory data{selection.place(report)}.")
    totals: dict[Key, int] = dict.fromkeys(spans, 0)
    rows = []
    for (key, kind), parts in lengths.items():
        values = np.concatenate(parts)
        length = int(values.sum())
        totals[key] += length
        rows.append(
            (
                key,
                kind,
                length,
                len(values),
                float(np.median(values)),
                int(values.min()),
                int(values.max()),
                unions[key, kind],
            )
        )
    order = list(spans)
    rows.sort(key=lambda row: (order.index(row[0]), -row[2], row[1]))
    keys, kinds, total, count, median, least, most, union = (
        list(column) for column in zip(*rows, strict=True)
    )
    columns = {
        "Time (%)": percent(total, [totals[key] for key in keys]),
        "Total Time (ns)": pa.array(total, pa.int64()),
        "Instances": pa.array(count, pa.int64()),
        "Avg (ns)": pa.array(
            [value / number for value, number in zip(total, count, strict=True)], pa.float64()
        ),
        "Med (ns)": pa.array(median, pa.float64()),
        "Min (ns)": pa.array(least, pa.int64()),
        "Max (ns)": pa.array(most, pa.int64()),
        "Union (ns)": pa.array(union, pa.int64()),
        "Span (%)": percent(union, [spans[key] for key in keys]),
        **apart.columns(keys),
        "Kind": pa.array(kinds),
    }
    return noted(pa.table(columns), whole_graphs(report, selection))


def _parts(track: WorkTrack) -> dict[str, WorkTrack]:
    """Part a track by kind of work."""
    kind = np.where(track.kind == STAGED, np.uint8(COPY), track.kind)
    order = np.argsort(kind, kind="stable")
    edges = np.searchsorted(kind[order], np.arange(len(KINDS) + 1))
    return {
        KINDS[n]: track.chosen(order[edges[n] : edges[n + 1]])
        for n in range(len(KINDS))
        if edges[n + 1] > edges[n]
    }
