"""GPU values over time: the memory of each process, and the launcher's readings of devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import Int64Array
from warplens.exporters.samples import CounterSamples
from warplens.exporters.tracks import batches, values

if TYPE_CHECKING:
    from warplens.report import Report

_MEMORY = ("process", "device", "kind")
_TENSORS = ("process", "device", "device_type")
_METRICS = ("host", "gpu", "metric", "unit")


@dataclass(frozen=True)
class GpuCounter:
    """A counter.

    `process` is the key of its process, or it belongs to the whole device that `gpu` names; `about`
    tells which it is.
    """

    name: str
    unit: str
    process: int | None = None
    gpu: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


_Row = dict[str, Any]


class GpuCounters:
    """The counters of a report, memory first; their samples name them by position."""

    @classmethod
    def of(cls, report: Report) -> GpuCounters:
        """Return those of a report."""
        counts = report.tables
        memory = "SELECT DISTINCT process, device, kind FROM gpu_memory WHERE total IS NOT NULL ORDER BY ALL"
        tensors = "SELECT DISTINCT process, device, device_type FROM tensor_memory WHERE allocated IS NOT NULL ORDER BY ALL"
        metrics = "SELECT DISTINCT host, gpu, metric, unit FROM gpu_metrics ORDER BY ALL"
        return cls(
            report,
            report.sql(memory).to_pylist() if counts["gpu_memory"] else [],
            report.sql(metrics).to_pylist() if counts["gpu_metrics"] else [],
            tensors=report.sql(tensors).to_pylist() if counts["tensor_memory"] else [],
        )

    def __init__(
        self, report: Report, memory: list[_Row], metrics: list[_Row], *, tensors: list[_Row]
    ) -> None:
        self._report, self._memory, self._metrics, self._tensors = report, memory, metrics, tensors
        hosts = len({row["host"] for row in self._metrics}) > 1
        self.all = [
            *(
                GpuCounter(_memory_name(row["device"], row["kind"]), "bytes", row["process"], about=row)
                for row in self._memory
            ),
            *(
                GpuCounter(
                    row["metric"],
                    row["unit"],
                    None,
                    gpu=f"GPU {row['gpu']} metrics" + (f" ({row['host']})" if hosts else ""),
                    about=row,
                )
                for row in self._metrics
            ),
            *(
                GpuCounter(_tensor_name(row["device"], row["device_type"]), "bytes", row["process"])
                for row in self._tensors
            ),
        ]

    def samples(self, *, most: int | None = None) -> Iterator[CounterSamples]:
        """Yield the samples, at most `most` at once."""
        for batch in (
            batches(self._report, "gpu_memory", (*_MEMORY, "start", "total"), most=most)
            if self._memory
            else ()
        ):
            batch = batch.filter(batch.column("total").is_valid())
            counter, total = _counter(batch, self._memory, _MEMORY, first=0), values(batch, "total")
            yield CounterSamples(
                counter,
                values(batch, "start"),
                total,
                real=total.astype(np.float64),
                is_float=np.zeros(len(total), bool),
            )
        for batch in (
            batches(self._report, "gpu_metrics", (*_METRICS, "start", "value"), most=most)
            if self._metrics
            else ()
        ):
            counter = _counter(batch, self._metrics, _METRICS, first=len(self._memory))
            real = np.ascontiguousarray(batch.column("value").to_numpy(zero_copy_only=False))
            known = ~np.isnan(real)
            nothing = np.zeros(int(known.sum()), np.int64)
            yield CounterSamples(
                counter[known],
                values(batch, "start")[known],
                nothing,
                real=real[known],
                is_float=np.ones(len(nothing), bool),
            )

        first = len(self._memory) + len(self._metrics)
        for batch in (
            batches(self._report, "tensor_memory", (*_TENSORS, "start", "allocated"), most=most)
            if self._tensors
            else ()
        ):
            batch = batch.filter(batch.column("allocated").is_valid())
            counter, total = _counter(batch, self._tensors, _TENSORS, first=first), values(batch, "allocated")
            yield CounterSamples(
                counter,
                values(batch, "start"),
                total,
                real=total.astype(np.float64),
                is_float=np.zeros(len(total), bool),
            )


def _counter(
    batch: pa.RecordBatch, rows: list[dict[str, Any]], keys: tuple[str, ...], first: int
) -> Int64Array:
    """Return the position of each row's counter."""
    counter = np.full(batch.num_rows, -1, np.int64)
    masks: dict[tuple[str, Any], npt.NDArray[np.bool_]] = {}
    for index, row in enumerate(rows):
        own = np.ones(batch.num_rows, bool)
        for key in keys:
            if (key, row[key]) not in masks:
                masks[key, row[key]] = _equal(batch.column(key), row[key])
            own &= masks[key, row[key]]
        counter[own] = first + index
    return counter


def _equal(column: pa.Array, value: Any) -> npt.NDArray[np.bool_]:
    if value is None:
        same = column.is_null()
    else:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        same = pc.fill_null(pc.equal(column, pa.scalar(value, kind)), False)
    return np.asarray(same.to_numpy(zero_copy_only=False), bool)


def _memory_name(device: int | None, kind: str | None) -> str:
    where = "Memory" if device is None else f"GPU {device} memory"
    return f"{where} ({kind})" if kind else where


def _tensor_name(device: int | None, kind: str | None) -> str:
    return f"Tensors on {kind or 'CPU'}" if device is None else f"Tensors on GPU {device}"
