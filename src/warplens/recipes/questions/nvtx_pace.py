"""The pace of a repeating NVTX range over iterations and ranks: shows ranks that are slower.

## What it asks
The length of each instance of one range on each rank (`:name=step`; default: the steps of
`step_breakdown`), and whether a rank is slower than the others beyond chance.

## How it is computed
Instances are numbered on each rank in order of start. A rank's excess in an iteration is its length
divided by the median of all ranks. A rank is slow if its excess is positive in more iterations than
chance explains (sign test, p < 0.01 after Bonferroni's correction for the number of ranks) and its
median excess is at least 1 %.

## Traps
Ranks that synchronise take equally long, whatever the cause: choose a range that ends before the
collective, or use `straggler`. Ranks that began recording at different iterations are compared by
position, not by number.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from warplens.analysis.steps.steps import base_name, steps
from warplens.arrays import Float64Array, Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.recipes import ranks
from warplens.recipes.base import Answer, Summary
from warplens.report import Report, Selection

_CHANCE, _WORTH = 0.01, 0.01


def part(report: Report, *, name: str = "") -> Summary:
    """Return the instances of the range in one report.

    Args:
        report: report of one rank.
        name: name of the range; default: the steps of the program.
    """
    rows = steps(report, Selection(), name or None)
    facts = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "host"]).to_pylist()
    }
    process = rows.column("process").to_pylist()
    return {
        "instances": pa.table(
            {
                "process": pa.array(process, pa.int64()),
                "device": pa.nulls(len(process), pa.int64()),
                "rank": pa.array([facts[one]["rank"] for one in process], pa.int64()),
                "host": pa.array([facts[one]["host"] for one in process], pa.string()),
                "iteration": rows.column("index").cast(pa.int64()),
                "name": rows.column("name").cast(pa.string()),
                "start": rows.column("start"),
                "length": pa.array(rows.column("end").to_numpy() - rows.column("start").to_numpy()),
            }
        )
    }


def answer(summary: Summary, *, name: str = "") -> Answer:
    """Compare the ranks. MissingData if no iteration has two ranks."""
    rows = summary["instances"]
    number, names, _ = ranks.names_of(rows)
    lengths = _laid_out(number, rows, len(names))
    if len(names) < 2 or not (np.isfinite(lengths).sum(axis=0) > 1).any():
        raise MissingData("the ranks have no iteration in common.")
    excess = lengths - np.nanmedian(lengths, axis=0)
    table = _table(names, lengths, excess)
    slow = [row for row in table.to_pylist() if row["Slow"]]
    title = name or base_name(str(rows.column("name")[0].as_py()))
    whole = lengths[np.isfinite(lengths)]
    lines = [
        f"{title}: {counted(lengths.shape[1], 'iteration')} on {counted(len(names), 'rank')}, "
        f"median {duration(float(np.median(whole)))} (least {duration(whole.min())}, greatest {duration(whole.max())})."
    ]
    lines += [
        f"{row['Rank'][:1].upper()}{row['Rank'][1:]} is slower: {duration(row['Excess (ns)'])} in the median, in "
        f"{row['Slower in']:,} of {counted(row['Iterations'], 'iteration')} (chance: p = {row['p']:.1g})."
        for row in slow[:4]
    ] or ["No rank is slower than the others beyond chance."]
    return Answer(
        lines,
        tables={"by_rank": table},
        details={"instances": rows.select(["report", "rank", "iteration", "name", "start", "length"])},
        facts={"range": title, "slow": [row["Rank"] for row in slow]},
    )


def _laid_out(number: Int64Array, rows: pa.Table, count: int) -> Float64Array:
    """Return lengths as ranks × iterations; NaN where a rank has none."""
    lengths = np.full((count, int(rows.column("iteration").to_numpy().max()) + 1), np.nan)
    lengths[number, rows.column("iteration").to_numpy()] = rows.column("length").to_numpy()
    return lengths


def _table(names: tuple[str, ...], lengths: Float64Array, excess: Float64Array) -> pa.Table:
    rows = []
    for rank, own, beyond in zip(names, lengths, excess, strict=True):
        own, beyond = own[np.isfinite(own)], beyond[np.isfinite(beyond)]
        slower, decided = int((beyond > 0).sum()), int((beyond != 0).sum())
        chance = min(_at_least(slower, decided) * len(names), 1.0)
        median = float(np.median(beyond)) if len(beyond) else 0.0
        rows.append(
            {
                "Rank": rank,
                "Iterations": len(own),
                "Med (ns)": float(np.median(own)),
                "Mean (ns)": float(own.mean()),
                "StdDev (ns)": float(own.std(ddof=1)) if len(own) > 1 else 0.0,
                "Max (ns)": float(own.max()),
                "Excess (ns)": median,
                "Slower in": slower,
                "p": chance,
                "Slow": chance < _CHANCE and median >= _WORTH * float(np.median(own)),
            }
        )
    return pa.Table.from_pylist(rows).sort_by([("Excess (ns)", "descending")])


def _at_least(successes: int, tries: int) -> float:
    """Return the chance of this many heads or more in `tries` throws of a coin."""
    if not tries:
        return 1.0
    logs = [
        math.lgamma(tries + 1) - math.lgamma(k + 1) - math.lgamma(tries - k + 1)
        for k in range(successes, tries + 1)
    ]
    return min(sum(math.exp(log - tries * math.log(2)) for log in logs), 1.0)
