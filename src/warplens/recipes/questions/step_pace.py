"""The steps of each rank: compute, communication, copies and idle time, and what is slow beyond chance.

## What it asks
Of each rank, the mean time of a step, and in it that of GPU compute, communication that nothing hides, copies
that nothing hides, and idle time. And which rank, host or GPU computes longer than the others, in more steps
than chance explains. Without GPUs: which parts of a step the host spent (forward, backward, data, …).

## How it is computed
Steps and their parts are those of `stats -r step_breakdown`. Steps with numbers are compared by number. A
step's length says little if ranks wait for one another; so the comparison is that of GPU compute, without
GPUs that of the step less the time in which a collective of the process was open. The test is that of `nvtx_pace`. `:name=` names
the ranges that are steps.

## Traps
The GPU runs behind the host: work that a step launched may run during the next one. A rank that computes
longer may have more to do: compare kernels with `kern_pace`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.intervals import Cover
from warplens.analysis.steps.names import PARTS
from warplens.analysis.steps.parts import STATES, parts
from warplens.analysis.steps.steps import steps
from warplens.arrays import Int64Array
from warplens.recipes import pace, ranks
from warplens.recipes.base import Answer, Summary
from warplens.recipes.collectives.reading import OPERATORS
from warplens.report import Report, Selection

_TIMES = [f"GPU {state.capitalize()} (ns)" for state in STATES]
_HOST = [f"{part.capitalize()} (ns)" for part in PARTS]


def part(report: Report, *, name: str = "") -> Summary:
    """Return the parts of each step of one report.

    Args:
        report: one rank's.
        name: of the ranges that are steps; default: as `step_breakdown` finds them.
    """
    rows = steps(report, Selection(), name or None)
    divided = parts(report, rows)
    on_host, on_gpu = divided.time.sum(axis=2), divided.time.sum(axis=1)
    start, end = (rows.column(edge).to_numpy() for edge in ("start", "end"))
    waiting = _in_collectives(report, rows)
    own = on_gpu[:, 0] if divided.gpu else end - start - waiting
    instances = pace.instances(
        report,
        pa.table(
            {
                **{one: rows.column(one) for one in ("process", "name")},
                "device": pa.nulls(rows.num_rows, pa.int64()),
                "iteration": rows.column("index"),
                "start": start,
                "end": start + own,
            }
        ),
    )
    times = {name: on_gpu[:, place] for place, name in enumerate(_TIMES)} if divided.gpu else {}
    if not divided.gpu:
        times = {name: on_host[:, place] for place, name in enumerate(_HOST)}
        times["In collectives (ns)"] = waiting
    whole = end - start
    return {
        "steps": pa.table(
            {**{one: instances.column(one) for one in instances.column_names}, "Step (ns)": whole, **times}
        )
    }


def answer(summary: Summary, *, name: str = "") -> Answer:
    """Compare the ranks. MissingData if no step has two ranks."""
    rows = summary["steps"]
    times = [one for one in rows.column_names if one.endswith("(ns)")]
    on_gpu = _TIMES[0] in times
    compared = pace.compared(
        rows, "GPU compute of a step" if on_gpu else "Own work of a step, outside of collectives"
    )
    number, names, _ = ranks.names_of(rows)
    means = (
        rows.select(times)
        .append_column("number", pa.array(number))
        .group_by("number")
        .aggregate([*((one, "mean") for one in times), ("Step (ns)", "count")])
        .sort_by("number")
    )
    breakdown = pa.table(
        {
            "Rank": [names[one] for one in means.column("number").to_pylist()],
            "Steps": means.column("Step (ns)_count"),
            **{one: means.column(f"{one}_mean") for one in times if pc.sum(rows.column(one)).as_py()},
        }
    )
    return Answer(
        compared.lines,
        maps=compared.maps,
        tables={"steps_by_rank": breakdown, **compared.tables},
        details={"steps": rows.select(["report", "rank", "iteration", "name", "start", *times])},
        facts=compared.facts,
    )


def _in_collectives(report: Report, steps_of: pa.Table) -> Int64Array:
    """Return for how long a collective of the host was open in each step."""
    calls = report.sql(
        """SELECT process, start, "end" FROM nvtx_ranges
           WHERE domain = 'pytorch' AND regexp_full_match(message, $pattern) ORDER BY start""",
        {"pattern": OPERATORS.pattern},
    )
    process, start, end = (steps_of.column(name).to_numpy() for name in ("process", "start", "end"))
    of = calls.column("process").to_numpy()
    result = np.zeros(len(start), np.int64)
    for one in np.unique(process).tolist():
        cover = Cover(*(calls.column(edge).to_numpy()[of == one] for edge in ("start", "end")))
        own = process == one
        result[own] = cover.within(start[own], end[own])
    return result
