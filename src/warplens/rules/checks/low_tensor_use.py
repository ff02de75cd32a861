"""Matrix products that leave the tensor cores unused.

## What it looks for
GPUs with recorded metrics: the mean activity of the tensor cores over the samples in which at least
half of the multiprocessors were active. Activity below 10 % is reported if kernels of matrix
products, convolutions or attention took at least a fifth of all kernel time.

## Why it costs time
Tensor cores multiply matrices 8 to 16 times as fast as the other units. They are not used in
float32 without TF32, in float64, or with odd sizes.

## What to do
Train in `torch.autocast("cuda", dtype=torch.bfloat16)`, allow TF32
(`torch.set_float32_matmul_precision("high")`; in JAX `jax.default_matmul_precision`), and make
sizes multiples of 8 (16-bit) or 16 (8-bit).

## When it does not apply
If the results must be exact. If memory limits the products, as with a batch of one: tensor cores
have little to do. If another process used the GPU: metrics describe the whole device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.gpu.kernel_classes import class_of
from warplens.analysis.gpu.ops import at, during
from warplens.analysis.intervals import covered
from warplens.errors import MissingData
from warplens.model.words import counted, duration, percent
from warplens.report.quoting import quoted
from warplens.rules.base import Evidence, Finding

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"
_PRODUCTS = frozenset({"gemm", "convolution", "attention"})


def check(
    report: Report,
    selection: Selection,
    *,
    rows: int = 50,
    active: float = 50,
    below: float = 10,
    share: float = 20,
) -> list[Finding]:
    """Return a finding for each GPU whose tensor cores had little to do.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of kernels kept as evidence.
        active: percent of the multiprocessors that must be active for a sample to count.
        below: percent of tensor core activity below which it is reported.
        share: percent of the kernels' time that matrix products must take.
    """
    metrics = report.sql(
        f"""WITH s AS (SELECT host, gpu, uuid, "start", max(value) FILTER (metric ILIKE '%tensor%') AS tensor,
                              max(value) FILTER (metric ILIKE 'SM% Active%' AND metric NOT ILIKE '%tensor%') AS sm
                       FROM gpu_metrics WHERE unit = '%' AND {at(report, selection)} GROUP BY ALL)
            SELECT gpu, uuid, avg(tensor) AS tensor, count(*) AS samples FROM s
            WHERE tensor IS NOT NULL AND coalesce(sm, 100) >= {active} GROUP BY ALL ORDER BY ALL"""
    ).to_pylist()
    if not metrics:
        raise MissingData(f"does not contain metrics of the tensor cores{selection.place(report)}.")
    findings = []
    for metric in metrics:
        products = (
            _products(report, selection, metric["uuid"], rows=rows) if metric["tensor"] < below else None
        )
        if products is None or products[0] < products[1] * share / 100:
            continue
        spent, whole, number, evidence = products
        findings.append(
            Finding(
                rule="low_tensor_use",
                subject=f"GPU {metric['gpu']}",
                title=f"The tensor cores of GPU {metric['gpu']} were active for {metric['tensor']:.1f} % of the time",
                cause=f"That is the mean of {counted(metric['samples'], 'sample')} in which at least {active:g} % "
                "of the multiprocessors were active, "
                f"though matrix products took {duration(spent)}, {percent(spent / whole)} of the time of its kernels.",
                fix="Use bfloat16 (torch.autocast), allow TF32 "
                "(torch.set_float32_matmul_precision('high')), and make sizes multiples of 8.",
                evidence=evidence,
                occurrences=number,
                bound=spent,
                confidence="medium",
            )
        )
    return findings


def _products(
    report: Report, selection: Selection, uuid: str | None, rows: int
) -> tuple[int, int, int, tuple[Evidence, ...]] | None:
    """Return the time of a GPU's matrix products and of all kernels, the number of products, and the longest."""
    on = "true" if uuid is None else f"uuid = {quoted(uuid)}"
    of = f"FROM kernels k JOIN devices d USING (process, device) WHERE {on} AND {during(report, selection, 'k.')}"
    names = report.sql(f"SELECT DISTINCT k.demangled AS name {of}").column(0).to_pylist()
    chosen = [name for name in names if name is not None and class_of(name) in _PRODUCTS]
    if not chosen:
        return None
    texts = ", ".join(map(quoted, chosen))
    every = report.sql(f'SELECT k."start", k."end" {of}')
    own = report.sql(
        f'SELECT k.id, k.process, k.device, k."start", k."end", k.name {of} AND k.demangled IN ({texts})'
    )
    begin, finish = selection.window(report) or report.span
    start, end = (
        np.clip(np.asarray(own.column(name).to_numpy(), np.int64), begin, finish) for name in ("start", "end")
    )
    longest = own.take(np.argsort(start - end, kind="stable")[:rows]).to_pylist()
    evidence = tuple(
        Evidence(
            table="kernels",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=row["name"],
            process=row["process"],
            thread=None,
            device=row["device"],
        )
        for row in longest
    )
    return (
        covered(start, end),
        covered(*(np.clip(every.column(n).to_numpy(), begin, finish) for n in (0, 1))),
        own.num_rows,
        evidence,
    )
