"""Samples of counters, for exporters.

Piece by piece, in the counter's unit, without those that hold no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.counters import DELTA, sample_values
from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.exporters.tracks import batches, values

if TYPE_CHECKING:
    from warplens.report import Report

_COLUMNS = ("counter", "start", "value_int", "value_float", "no_value")


@dataclass(frozen=True)
class ExportCounter:
    """A counter; `process` is the key of its process. `delta`: its values are changes."""

    key: int
    process: int
    name: str
    unit: str
    description: str
    scale: float
    delta: bool
    unsigned: bool


@dataclass(frozen=True)
class CounterSamples:
    """Samples in the order of the report.

    Position of the counter, ns, and the value as an integer, or as a float where `is_float`.
    """

    counter: Int64Array
    time: Int64Array
    whole: Int64Array
    real: npt.NDArray[np.float64]
    is_float: npt.NDArray[np.bool_]


def counters(report: Report) -> list[ExportCounter]:
    """List the counters of a report."""
    rows = report.table("nvtx_counters").to_pylist()
    return [_counter(row) for row in sorted(rows, key=lambda row: int(row["counter"]))]


def samples(
    report: Report, known: list[ExportCounter], *, most: int | None = None
) -> Iterator[CounterSamples]:
    """Yield the samples that have a value, at most `most` at once.

    ReportError if one is of a counter that is not known.
    """
    keys = np.array([counter.key for counter in known], np.int64)
    scales = np.array([counter.scale for counter in known], np.float64)
    unsigned = np.array([counter.unsigned for counter in known], bool)
    for batch in batches(report, "nvtx_counter_samples", _COLUMNS, most=most):
        rows = pa.Table.from_batches([batch])
        wanted = values(batch, "counter")
        place = np.searchsorted(keys, wanted)
        exists = place < len(keys)
        exists[exists] = keys[place[exists]] == wanted[exists]
        if not exists.all():
            raise ReportError(
                f"{report.path} is broken: its samples name the counter {wanted[~exists][0]}, which it lacks"
            )
        scale, given = scales[place], values(batch, "value_int")
        real = sample_values(rows, unsigned[place])
        missing = pc.is_null(rows.column("value_int")).to_numpy() & (real != 0)
        with np.errstate(over="ignore", invalid="ignore"):  # whatever scale the program gave
            scaled = real * scale
            # a float can be just above the largest integer that it came from
            is_float = (
                missing
                | (scale != np.floor(scale))
                | ~(np.abs(scaled) < 2.0**63) & ((scale != 1) | unsigned[place])
            )
        whole = given * np.where(is_float, 0, scale).astype(np.int64)
        kept = ~np.isnan(scaled)
        yield CounterSamples(
            place[kept], values(batch, "start")[kept], whole[kept], real=scaled[kept], is_float=is_float[kept]
        )


def _counter(row: dict[str, Any]) -> ExportCounter:
    name = row["name"] or f"counter {row['id']}"
    return ExportCounter(
        row["counter"],
        row["process"],
        f"{row['domain']}:{name}" if row["domain"] else name,
        unit=row["unit"] or "",
        description=row["description"] or "",
        scale=float(row["scale"] or 1),
        delta=row["value_type"] == DELTA,
        unsigned=row["type"] == "uint64",
    )
