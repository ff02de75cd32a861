"""Readings of the GPUs' own counters: the table `gpu_metrics`."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from warplens.importers.nsys.database import LATEST
from warplens.importers.nsys.names import distinct_values
from warplens.importers.nsys.rows import NsysRows
from warplens.importers.nsys.taken import NsysContext
from warplens.model.nsys_labels import METRIC_UNITS

_TABLE, _NAMES = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_UNIT = re.compile(r"\s*\[([^\]]*)\]$")  # `SMs Active [Throughput %]`


def write(context: NsysContext, host: str) -> None:
    """Write `gpu_metrics`, piece by piece: there may be very many."""
    context.tally.used |= {_TABLE, _NAMES}
    named = context.database.read(_NAMES, ["typeId", "metricId"], texts=["metricName"])
    columns = (
        *(named.ints(name).tolist() for name in ("typeId", "metricId")),
        named.texts("metricName").to_pylist(),
    )
    names = {(kind, metric): split(name or "") for kind, metric, name in zip(*columns, strict=True)}
    uuids = _uuids(context)
    for rows in context.database.sorted_batches(
        _TABLE, ("timestamp", "typeId", "metricId"), ("value",), "timestamp"
    ):
        times = rows.ints("timestamp")
        good = rows.valid("timestamp") & (times >= -LATEST) & (times <= LATEST)
        if not good.all():
            context.tally.say(
                "warning",
                "no-time",
                f"rows of {_TABLE} without a time that can be were left out",
                int((~good).sum()),
            )
        _write(context, host, rows.taken(good), names=names, uuids=uuids)


def split(name: str) -> tuple[str, str]:
    """Return a metric's name and unit: nsys writes the unit in brackets behind the name."""
    match = _UNIT.search(name)
    unit = METRIC_UNITS.get(match[1]) if match else None
    return (name[: match.start()], unit) if match and unit is not None else (name, "")


def _write(
    context: NsysContext,
    host: str,
    rows: NsysRows,
    names: dict[tuple[int, int], tuple[str, str]],
    uuids: dict[int, str],
) -> None:
    kinds, places = np.unique(
        np.stack([rows.ints("typeId"), rows.ints("metricId")]), axis=1, return_inverse=True
    )
    codes = places.reshape(-1).astype(np.int32)
    pairs = [names.get((kind, metric), (f"metric {metric}", "")) for kind, metric in kinds.T.tolist()]
    gpu = (rows.ints("typeId") & 0xFF).astype(np.int32)
    always = np.ones(len(rows), bool)
    numbers, which = np.unique(gpu, return_inverse=True)
    known = np.array([number in uuids for number in numbers.tolist()], bool)[which.reshape(-1)]
    context.write(
        "gpu_metrics",
        {
            "host": pa.repeat(pa.scalar(host), len(rows)),
            "gpu": gpu,
            "uuid": distinct_values(
                which.reshape(-1).astype(np.int32),
                [uuids.get(number, "") for number in numbers.tolist()],
                known,
            ),
            "start": rows.ints("timestamp"),
            "metric": distinct_values(codes, [name for name, _ in pairs], always),
            "unit": distinct_values(codes, [unit for _, unit in pairs], always),
            "value": rows.reals("value"),
        },
    )


def _uuids(context: NsysContext) -> dict[int, str]:
    rows = context.database.read("TARGET_INFO_GPU", ["id"], texts=["uuid"])
    return {
        gpu: f"GPU-{uuid}"
        for gpu, uuid in zip(rows.ints("id").tolist(), rows.texts("uuid").to_pylist(), strict=True)
        if uuid
    }
