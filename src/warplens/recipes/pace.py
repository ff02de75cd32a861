"""Compares the ranks in one item that repeats: a range, a kernel, the steps. Names what is slower beyond chance.

A rank's excess in an iteration is its length over the median of all ranks. Ranks are slow if their excess
is positive in more iterations than chance explains (sign test, p < 0.01 after Bonferroni's correction) and
their median excess is at least 1 %. Hosts, and GPUs of the same number, are compared in the same way: by
the median excess of their ranks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.arrays import Float64Array, Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.recipes import ranks, steps
from warplens.recipes.base import Answer, HeatMap
from warplens.recipes.chance import at_least
from warplens.report import Report

_CHANCE, _WORTH = 0.01, 0.01
_LINES = 4
_COLUMNS = 80  # of the map
INSTANCES = {
    **dict.fromkeys(("process", "device", "rank"), pa.int64()),
    **dict.fromkeys(("host", "name"), pa.string()),
    **dict.fromkeys(("iteration", "start", "length"), pa.int64()),
}


@dataclass(frozen=True)
class RankPace:
    """`lengths`: ranks × iterations, ns; NaN if a rank has none. `excess`: over the median of all ranks."""

    names: tuple[str, ...]
    hosts: list[str]
    devices: list[int | None]
    reports: list[int]
    iterations: list[int]
    lengths: Float64Array
    excess: Float64Array


def instances(report: Report, rows: pa.Table) -> pa.Table:
    """Return a summary of `rows` (process, device, name, iteration, start, end) of one report."""
    facts = {
        row["process"]: row for row in report.table("processes", ["process", "rank", "host"]).to_pylist()
    }
    process = rows.column("process").to_pylist()
    columns = {
        **{name: rows.column(name) for name in ("process", "device", "iteration", "start")},
        "rank": pa.array([facts[one]["rank"] for one in process], pa.int64()),
        "host": pa.array([facts[one]["host"] for one in process], pa.string()),
        "name": rows.column("name").cast(pa.string()),
        "length": pa.array(rows.column("end").to_numpy() - rows.column("start").to_numpy()),
    }
    return pa.table(columns).select(list(INSTANCES)).cast(pa.schema(list(INSTANCES.items())))


def compared(rows: pa.Table, title: str) -> Answer:
    """Compare the ranks. MissingData if no iteration has two ranks."""
    pace = _laid_out(rows)
    if len(pace.names) < 2 or not (np.isfinite(pace.lengths).sum(axis=0) > 1).any():
        raise MissingData("the ranks have no iteration in common.")
    table = _table("Rank", pace.names, pace.excess, lengths=pace.lengths)
    slow = [row for row in table.to_pylist() if row["Slow"]]
    tables, groups = {"by_rank": table}, []
    for down, keys in (("Host", pace.hosts), ("GPU", pace.devices)):
        grouped = _grouped(down, keys, pace)
        if grouped is not None:
            tables[f"by_{down.lower()}"] = grouped
            groups += [(down, row) for row in grouped.to_pylist() if row["Slow"]]
    whole = pace.lengths[np.isfinite(pace.lengths)]
    drawn = _binned(pace)
    lines = [
        f"{title}: {counted(pace.lengths.shape[1], 'iteration')} on {counted(len(pace.names), 'rank')}, "
        f"median {duration(float(np.median(whole)))} (least {duration(whole.min())}, greatest {duration(whole.max())})."
    ]
    lines += [_line(row["Rank"], row) for row in slow[:_LINES]] or [
        "No rank is slower than the others beyond chance."
    ]
    lines += [_line(f"{down} {row[down]}", row) for down, row in groups[:_LINES]]
    shown = HeatMap(
        pace.names,
        [pace.iterations[first] for first in drawn],
        np.stack([_median(pace.lengths[:, own], axis=1) for own in drawn.values()], axis=1),
        down="Rank",
        across="Iteration",
        value="Length (ns)",
        scale=(float(whole.min()), float(whole.max())),
        ends=[duration(length) for length in _median(pace.lengths, axis=1).tolist()],
        reports=pace.reports,
    )
    return Answer(
        lines,
        maps={"map": shown} if pace.lengths.shape[1] > 1 else {},
        tables=tables,
        details={"instances": rows.select(["report", "rank", "iteration", "name", "start", "length"])},
        facts={
            "range": title,
            "slow": [row["Rank"] for row in slow],
            **{
                f"slow_{down.lower()}s": [row[down] for own, row in groups if own == down]
                for down in ("Host", "GPU")
            },
        },
    )


def _laid_out(rows: pa.Table) -> RankPace:
    number, names, hosts = ranks.names_of(rows)
    iterations, place = np.unique(_iterations(rows, number), return_inverse=True)
    lengths = np.full((len(names), len(iterations)), np.nan)
    lengths[number, place] = rows.column("length").to_numpy()
    _, first = np.unique(number, return_index=True)
    devices, reports = (rows.column(name).take(pa.array(first)).to_pylist() for name in ("device", "report"))
    return RankPace(
        names,
        hosts,
        devices,
        reports=reports,
        iterations=iterations.tolist(),
        lengths=lengths,
        excess=lengths - np.nanmedian(lengths, axis=0) if len(iterations) else lengths,
    )


def _iterations(rows: pa.Table, number: Int64Array) -> Int64Array:
    """Return the iteration of each row: the number in its name if all rows have one, else its place."""
    names = np.array(rows.column("name").to_pylist(), object)
    result: Int64Array = rows.column("iteration").to_numpy().copy()
    for rank in np.unique(number).tolist():
        own = np.flatnonzero(number == rank)
        known = steps.numbers(names[own].tolist())
        if known is None:
            return np.asarray(rows.column("iteration").to_numpy(), np.int64)
        result[own] = known
    return result


def _binned(pace: RankPace) -> dict[int, slice]:
    """Return the iterations of each column of the map, by the first of them."""
    count = len(pace.iterations)
    edges = np.linspace(0, count, min(count, _COLUMNS) + 1).astype(int).tolist()
    return {first: slice(first, behind) for first, behind in pairwise(edges)}


def _median(values: Float64Array, axis: int) -> Float64Array:
    """Return the median of the values that are known; NaN where none is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        median: Float64Array = np.nanmedian(values, axis=axis)
    return median


def _grouped(down: str, keys: Sequence[object], pace: RankPace) -> pa.Table | None:
    """Compare groups of ranks; None if each rank is its own group, or all are one."""
    known = list(dict.fromkeys(keys))
    if None in known or not 1 < len(known) < len(keys):
        return None
    own = [np.array([key == one for key in keys]) for one in known]
    excess = np.stack([_median(pace.excess[rows], axis=0) for rows in own])
    lengths = np.stack([_median(pace.lengths[rows], axis=0) for rows in own])
    return _table(down, [str(one) for one in known], excess, lengths=lengths)


def _table(down: str, names: Sequence[str], excess: Float64Array, lengths: Float64Array) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for name, beyond, own in zip(names, excess, lengths, strict=True):
        own, beyond = own[np.isfinite(own)], beyond[np.isfinite(beyond)]
        slower, decided = int((beyond > 0).sum()), int((beyond != 0).sum())
        chance = min(at_least(slower, decided) * len(names), 1.0)
        median = float(np.median(beyond)) if len(beyond) else 0.0
        rows.append(
            {
                down: name,
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


def _line(name: str, row: dict[str, Any]) -> str:
    return (
        f"{name[:1].upper()}{name[1:]} is slower: {duration(row['Excess (ns)'])} in the median, in "
        f"{row['Slower in']:,} of {counted(row['Iterations'], 'iteration')} (chance: p = {row['p']:.1g})."
    )
