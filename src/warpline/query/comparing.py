"""What a report did, by kind and name, with the figures that two reports are compared by: sums, quantiles, and time in each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warpline.errors import MissingData
from warpline.query.gpu_ops import busy, during, operations
from warpline.query.steps import base_name, steps

if TYPE_CHECKING:
    from warpline.query.report import Report
    from warpline.query.selection import Selection

STEP = "step"
KINDS = (STEP, "gpu", "kernel", "memory", "graph", "range", "api", "os")
_GPU_KINDS = {"CUDA_KERNEL": "kernel", "MEMORY_OPER": "memory", "CUDA_GRAPH": "graph"}
_STEPS = {"steps": pa.int64(), "step_mean": pa.float64(), "step_variance": pa.float64()}
_COUNTERS = ", (seq|op_id) = [0-9]+"
_NUMBER = "[ _#:=-]*[0-9]+$"
_FIGURES = """count(*) AS count, sum(length)::BIGINT AS total, avg(length) AS mean, quantile_disc(length, 0.5)::BIGINT AS p50,
    quantile_disc(length, 0.95)::BIGINT AS p95, max(length)::BIGINT AS max, min(length)::BIGINT AS min, stddev_samp(length) AS deviation"""


def training_steps(report: Report, selection: Selection, name: str | None) -> pa.Table | None:
    """Return the steps of a report (see `query.steps`); None where there are none and no name was asked for. Raises MissingData."""
    try:
        return steps(report, selection, name)
    except MissingData:
        if name is not None:
            raise
        return None


def figures(report: Report, selection: Selection, found: pa.Table | None) -> pa.Table:
    """Return a row for each kind and name of thing that the report did in the selection.

    Columns: kind (one of KINDS), name, count, total, mean, p50, p95, max, min, deviation (ns; of a sample, null for one), and of its
    time in each of the steps `found` that had any: steps (how many), step_mean, step_variance (ns, ns²; 0 without steps). What belongs
    to a step began in it, or was launched in it, in its process. The numbers behind the names of NVTX ranges are one name (`batch 7` is
    `batch#`). `step` and `gpu` (busy and idle time of each GPU number, of all processes) have no steps.
    """
    rows = _rows(report, selection)
    where = "SELECT kind, name, length, process, asked FROM " + rows
    plain = report.sql(f"SELECT kind, name, {_FIGURES} FROM ({where}) GROUP BY ALL ORDER BY ALL")
    if found is not None and found.num_rows:
        each = _each_step(report, rows, found)
        keys = zip(plain.column("kind").to_pylist(), plain.column("name").to_pylist(), strict=True)
        own = [each.get(key, (0, 0.0, 0.0)) for key in keys]
        for place, (name, kind) in enumerate(_STEPS.items()):
            plain = plain.append_column(name, pa.array([values[place] for values in own], kind))
    return pa.concat_tables([*_own(report, selection, found), plain], promote_options="default")


def _rows(report: Report, selection: Selection) -> str:
    """Return the relation of all that is compared: kind, name, length (ns), process, asked (when it was asked for)."""
    kinds = " ".join(f"WHEN '{category}' THEN '{kind}'" for category, kind in _GPU_KINDS.items())
    chosen = during(report, selection, "o.")
    own = during(report, selection)
    # Names that count, as emit_nvtx of PyTorch and people's loops make them, would never meet their like.
    message = f"regexp_replace(regexp_replace(coalesce(message, ''), '{_COUNTERS}', '', 'g'), '{_NUMBER}', '#')"
    named = f"coalesce(domain, '') || ':' || {message}"
    selects = [
        f"""SELECT CASE o.category {kinds} END AS kind, o.operation AS name, o."end" - o."start" AS length, o.process,
                   coalesce(a."start", o."start") AS asked FROM {operations()} o LEFT JOIN cuda_api a ON o.api = a.id WHERE {chosen}""",
        f"""SELECT 'range', {named}, "end" - "start", process, "start" FROM nvtx_ranges WHERE NOT unfinished AND {own}""",
        f"""SELECT 'api', name, "end" - "start", process, "start" FROM cuda_api WHERE {own}""",
        f"""SELECT 'os', name, "end" - "start", process, "start" FROM osrt WHERE {own}""",
    ]
    return f"({' UNION ALL '.join(selects)})"


def _each_step(report: Report, rows: str, found: pa.Table) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Return for each kind and name in how many steps it had time, and mean and variance of that."""
    given, params = _given(found, ("process", "start", "end"))
    text = f"""WITH steps AS {given}
        SELECT kind, name, count(*) AS steps, avg(total) AS mean, var_pop(total) AS variance FROM (
          SELECT r.kind, r.name, s.process, s."start", sum(r.length)::BIGINT AS total
          FROM {rows} r ASOF JOIN steps s ON r.process = s.process AND r.asked >= s."start" WHERE r.asked < s."end" GROUP BY ALL)
        GROUP BY ALL"""
    found_rows = report.sql(text, params).to_pylist()
    return {(row["kind"], row["name"]): (row["steps"], row["mean"], row["variance"]) for row in found_rows}


def _own(report: Report, selection: Selection, found: pa.Table | None) -> list[pa.Table]:
    """Return the figures of the steps themselves, and of how long GPUs were busy and idle."""
    parts = []
    if found is not None and found.num_rows:
        names = pa.array([base_name(name) for name in found.column("name").to_pylist()])
        given, params = _given(found.set_column(found.column_names.index("name"), "name", names), ("name", "start", "end"))
        lengths = f"""SELECT name, "end" - "start" AS length FROM {given}"""
        parts.append(report.sql(f"SELECT '{STEP}' AS kind, name, {_FIGURES} FROM ({lengths}) GROUP BY ALL ORDER BY ALL", params))
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
