"""Names of a job's ranks, in tables and lines."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import Int64Array
from warplens.report import Report

# Columns of a summary that say which rank a row is of, with the number of its report.
PLACE = ("report", "process", "device", "rank", "host")
_Key = tuple[object, ...]


def names_of(rows: pa.Table) -> tuple[Int64Array, tuple[str, ...], list[str]]:
    """Return the number of each row's rank, from 0, and the name and host of each rank.

    `rows` has the columns of PLACE. Ranks are named by number where that tells them apart, else by report or GPU.
    """
    import numpy as np

    keys = list(zip(*(rows.column(name).to_pylist() for name in PLACE), strict=True))
    known = sorted(
        set(keys), key=lambda key: tuple(-1 if part is None else part for part in (key[3], *key[:3]))
    )
    numbers = {key: number for number, key in enumerate(known)}
    return (
        np.array([numbers[key] for key in keys], np.int64),
        _named(known),
        [str(key[4]) for key in known],
    )


def named_report(report: Report) -> pa.Table:
    """Return the row of a summary by which `names_of_reports` calls this report."""
    least = pc.min(report.table("processes", ["rank"]).column("rank")).as_py()
    return pa.table({"name": [report.path.name], "rank": pa.array([least], pa.int64())})


def names_of_reports(reports: pa.Table) -> dict[int, str]:
    """Return what each report is called: its rank where ranks tell the reports apart, else its name."""
    ranks = reports.column("rank").to_pylist()
    apart = None not in ranks and len(set(ranks)) == len(ranks)
    texts = [f"rank {rank}" for rank in ranks] if apart else reports.column("name").to_pylist()
    return dict(zip(reports.column("report").to_pylist(), texts, strict=True))


def _named(known: Sequence[_Key]) -> tuple[str, ...]:
    for texts in (
        [f"rank {key[3]}" for key in known if key[3] is not None],
        [f"report {key[0]}" for key in known],
        [f"GPU {key[2]}" for key in known],
        [f"process {key[1]}" for key in known],
    ):
        if len(set(texts)) == len(known):
            return tuple(texts)
    return tuple(f"report {key[0]}, process {key[1]}, GPU {key[2]}" for key in known)
