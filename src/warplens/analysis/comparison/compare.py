"""The figures by which two reports are compared, by kind and name: sums, quantiles, and time in each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.analysis.comparison.comparable import ComparableRows, Steps, kinds
from warplens.analysis.comparison.inside_kernels import KIND, inside
from warplens.analysis.gpu.ops import busy
from warplens.analysis.steps.steps import base_name, steps
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

STEP = "step"
KINDS = (STEP, "gpu", "kernel", KIND, "memory", "graph", "range", "api", "os")
_CUDA = ("kernels", "memcpys", "memsets", "graphs", "cuda_api")
_SOURCES = {
    **dict.fromkeys(("gpu", "kernel", "memory", "graph", "api"), (_CUDA, "cuda")),
    "range": (("nvtx_ranges", "nvtx_marks"), "nvtx"),
    "os": (("osrt",), "osrt"),
}
_QUANTILES = {"p50": 0.5, "p95": 0.95}
_NOTHING = ComparableRows(
    "",
    [],
    np.empty(0, np.int32),
    length=np.empty(0, np.int64),
    step=np.empty(0, np.int32),
    launched=np.empty(0, np.int32),
)
_FIGURES = """count(*) AS count, sum(length)::BIGINT AS total, avg(length) AS mean, quantile_disc(length, 0.5)::BIGINT AS p50,
    quantile_disc(length, 0.95)::BIGINT AS p95, max(length)::BIGINT AS max, min(length)::BIGINT AS min, stddev_samp(length) AS deviation"""


def training_steps(report: Report, selection: Selection, name: str | None) -> pa.Table | None:
    """Return the steps of a report (see `analysis.steps`).

    None where there are none and no name was requested. Raises MissingData.
    """
    try:
        return steps(report, selection, name)
    except MissingData:
        if name is not None:
            raise
        return None


def looked_at(report: Report, kind: str) -> bool:
    """Return whether a recording looked at things of a kind: it has some, or the source of them was on."""
    tables, source = _SOURCES.get(kind, ((), ""))
    on = any(manifest.sources.get(source, {}).get("on") for manifest in report.manifests)
    return not tables or any(report.tables[table] for table in tables) or on


def figures(report: Report, selection: Selection, step_rows: pa.Table | None) -> tuple[pa.Table, list[str]]:
    """Return a row for each kind and name in the selection, and the kernels of a typical step in order.

    Columns: kind (one of KINDS), name, count, total, mean, p50, p95, max, min, deviation (ns; of a sample, null for one), and of its
    time in each of the steps `step_rows` that had any: steps (how many), step_mean, step_variance (ns, ns²; 0 without steps). What belongs
    to a step began in it, or was launched in it (regions inside kernels: their kernel), in its process. The numbers behind the names of
    NVTX ranges are one name (`batch 7` is `batch#`). `step` and `gpu` (busy and idle time of each GPU number, of all processes) have no
    steps. The kernels are the names of the first ones that were launched in the step in the middle, or in all where there are no steps.
    """
    parts, order = _own(report, selection, step_rows), list[str]()
    steps = Steps.of(step_rows)
    for rows in chain(
        kinds(report, selection, steps, typical=steps.count // 2), inside(report, selection, steps)
    ):
        parts.append(_figures(rows, steps.count > 0))
        if rows.kind == "kernel":
            order = [rows.names[code] for code in rows.launched.tolist()]
    return pa.concat_tables(parts, promote_options="default") if parts else _figures(_NOTHING, False), order


def _figures(rows: ComparableRows, stepped: bool) -> pa.Table:
    """Return the row of each name of a kind."""
    number = len(rows.names)
    # Rows by name, then length, so the rows of name i are length[first[i] : first[i] + count[i]],
    # the shortest first. Least, greatest and every quantile are then single elements of that
    # stretch.
    order = np.lexsort((rows.length, rows.code))
    length = rows.length[order]
    count = np.bincount(rows.code, minlength=number)
    first = np.cumsum(count) - count
    total = np.add.reduceat(length, first) if number else length
    mean = total / count
    away = length - np.repeat(mean, count)
    spread = np.add.reduceat(np.multiply(away, away, out=away), first) if number else away
    columns = {
        "kind": pa.array([rows.kind] * number, pa.string()),
        "name": pa.array(rows.names, pa.string()),
        "count": count,
        "total": total,
        "mean": mean,
        **{
            # Quantile p of n values is the ceil(p * n)-th smallest: of 5 values the median is the
            # 3rd.
            name: length[first + np.maximum(np.ceil(part * count).astype(np.int64), 1) - 1]
            for name, part in _QUANTILES.items()
        },
        "max": length[first + count - 1],
        "min": length[first],
        "deviation": pa.array(np.sqrt(spread / np.maximum(count - 1, 1)), mask=count < 2),
    }
    del order, length, away
    return pa.table({**columns, **_each_step(rows, number, stepped)})


def _each_step(rows: ComparableRows, number: int, stepped: bool) -> dict[str, npt.NDArray[Any]]:
    """Return of each name in how many steps it had time, and mean and variance of that."""
    steps, mean, variance = np.zeros(number, np.int64), np.zeros(number), np.zeros(number)
    inside = np.flatnonzero(rows.step >= 0) if stepped else rows.step[:0]
    if len(inside):
        width = int(rows.step.max()) + 1
        # One number for each (name, step): with 3 steps, name 2 in step 1 is cell 7. Sorted by it,
        # `reduceat` sums the time of each cell. Steps without the name have no cell, so mean and
        # variance are over the steps that have it.
        cell = rows.code[inside].astype(np.int64) * width + rows.step[inside]
        order = np.argsort(cell, kind="stable")
        cell = cell[order]
        first = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]]))
        spent = np.add.reduceat(rows.length[inside][order], first)
        name = cell[first] // width
        steps = np.bincount(name, minlength=number)
        some = np.maximum(steps, 1)
        mean = np.bincount(name, spent, number) / some
        variance = np.bincount(name, (spent - mean[name]) ** 2, number) / some
    return {"steps": steps, "step_mean": mean, "step_variance": variance}


def _own(report: Report, selection: Selection, step_rows: pa.Table | None) -> list[pa.Table]:
    """Return the figures of the steps themselves, and of how long GPUs were busy and idle."""
    parts = []
    if step_rows is not None and step_rows.num_rows:
        names = pa.array([base_name(name) for name in step_rows.column("name").to_pylist()])
        given, params = _given(
            step_rows.set_column(step_rows.column_names.index("name"), "name", names),
            ("name", "start", "end"),
        )
        lengths = f"""SELECT name, "end" - "start" AS length FROM {given}"""
        parts.append(
            report.sql(
                f"SELECT '{STEP}' AS kind, name, {_FIGURES} FROM ({lengths}) GROUP BY ALL ORDER BY ALL",
                params,
            )
        )
    spent: Counter[str] = Counter()
    for gpu in busy(report, selection).to_pylist():
        spent[f"GPU {gpu['device']} busy"] += gpu["busy"]
        spent[f"GPU {gpu['device']} idle"] += gpu["last"] - gpu["first"] - gpu["busy"]
    if spent:
        lengths = "(SELECT unnest($name) AS name, unnest($length)::BIGINT AS length)"
        text = f"SELECT 'gpu' AS kind, name, {_FIGURES} FROM {lengths} GROUP BY ALL ORDER BY ALL"
        parts.append(report.sql(text, {"name": list(spent), "length": list(spent.values())}))
    return parts


def _given(table: pa.Table, columns: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return rows that SQL is to see as a relation (in parentheses) and its parameters."""
    listed = ", ".join(f'unnest(${name}) AS "{name}"' for name in columns)
    return f"(SELECT {listed})", {name: table.column(name).to_pylist() for name in columns}
