"""GPU Time by Kind of Work.

## What it shows
GPU time by kind of work: matrix products, attention, elementwise kernels, communication, copies, …

## Columns
- Time (%): the row's share of the Total Time of its GPU. Total Time, Avg, Med, Min, Max (ns):
  durations of the operations.
- Instances: number of operations.
- Union (ns): time in which at least one of them ran. Span (%): Union as a share of the time from
  the GPU's first to its last operation.
- Host, Rank, PID, Device, Stream: the GPU or stream. Each is shown only if rows differ in it,
  Stream only with `:by=stream`.
- Kind: for kernels the class, by name: gemm, attention, convolution, normalization, softmax,
  reduction, elementwise, embedding, sort/scan, optimizer, memory (kernels that only move data),
  communication, random, linear algebra (factorizations, solvers), autotuning (XLA tries kernels),
  other. For other operations: copy, memset, migration, graph.

## How it is computed
Kernels are classified by their full names, which libraries and compilers choose: cuBLAS, CUTLASS,
rocBLAS (gemm); FlashAttention, xFormers, FlashInfer (attention); cuDNN, MIOpen (convolution); NCCL,
RCCL, NVSHMEM, DeepEP (communication); cuSOLVER, MAGMA (linear algebra); CUB, cuRAND, PyTorch,
Inductor, Triton, XLA, vLLM. `analysis/gpu/kernel_classes.py` has the table with its sources.
Operations across an edge of the selected time count with the part inside. Medians of `:by=process`
and `:by=rank` are over all their GPUs. Rows are sorted by GPU, then by total, largest first.

## Traps
- A fused kernel has one class: the one of the most specific word in its name.
- Your own kernels (`scale(float*, int)`) are `other`, unless their names say what they do. In a
  program of such kernels, everything is `other`; in recordings of frameworks and libraries it is at
  most a tenth. cuda_gpu_kern_sum lists the names.
- Operations of several streams overlap: totals may exceed the time in which the GPU was busy, Union
  does not.
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
    """Return the breakdown; raises MissingData if no GPU did anything.

    Args:
        report: the report.
        selection: the part to use.
        by: `device`, `stream`, `process` or `rank`: one row for each.
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
