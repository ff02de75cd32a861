"""The operations of a pipeline-parallel training job whose times follow from the lengths of its computations.

The schedule is 1F1B, simulated here without the graph that is tested: each stage does its computations
in a fixed order, and each begins when the one before it and the one on the neighbouring stage have
ended. Transfers and collectives take no time of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Stage, dp rank, step and microbatch to seconds.
Length = Callable[[int, int, int, int], float]


def order(stage: int, stages: int, microbatches: int) -> list[tuple[str, int]]:
    """Return the computations of a stage: some forwards, then forward and backward in turn, then backwards."""
    ahead = min(stages - stage - 1, microbatches)
    todo = [("forward", number) for number in range(ahead)]
    for number in range(microbatches - ahead):
        todo += [("forward", ahead + number), ("backward", number)]
    return todo + [("backward", microbatches - ahead + number) for number in range(ahead)]


def job(
    stages: int, dp: int, steps: int, microbatches: int, *, forward: Length, backward: Length
) -> list[dict[str, Any]]:
    """Return the rows of a job, as its Parquet file has them."""
    rows: list[dict[str, Any]] = []
    for step in range(steps):
        last = 0.0
        own: list[dict[str, Any]] = []
        for dp_rank in range(dp):
            ends = _pipeline(
                stages, dp_rank, step, microbatches, forward=forward, backward=backward, rows=own
            )
            last = max(last, ends)
        for stage in range(stages):
            for dp_rank in range(dp):
                begin = max(
                    row["start_ts"] + row["duration"]
                    for row in own
                    if (row["stage"], row["dp_rank"]) == (stage, dp_rank)
                )
                collective = _row(stage, dp_rank, step, "optimizer-clip-main-grad", begin, last, 0, dp=dp)
                own += [collective, _row(stage, dp_rank, step, "optimizer", last, last, 0, dp=dp)]
        rows += own
    for row in rows:
        row["rank"] = row["stage"] * dp + row["dp_rank"]
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write the rows as the published traces do: small numbers, times as float."""
    table = pa.Table.from_pylist(rows)
    table = table.set_column(
        table.column_names.index("optype"), "optype", table.column("optype").dictionary_encode()
    )
    pq.write_table(table, path)
    return path


def _row(
    stage: int, dp_rank: int, step: int, kind: str, begin: float, end: float, number: int, *, dp: int
) -> dict[str, Any]:
    return {
        "dp_rank": dp_rank,
        "stage": stage,
        "rank": stage * dp + dp_rank,
        "step": step,
        "optype": kind,
        "start_ts": begin,
        "duration": end - begin,
        "seq_id": number,
        "mc": 0,
    }


def _pipeline(
    stages: int,
    dp_rank: int,
    step: int,
    microbatches: int,
    *,
    forward: Length,
    backward: Length,
    rows: list[dict[str, Any]],
) -> float:
    """Simulate one dp rank; return when its last computation ends."""
    orders = [order(stage, stages, microbatches) for stage in range(stages)]
    ends: dict[tuple[str, int, int], float] = {}
    free = [0.0] * stages
    at = [0] * stages
    while any(at[stage] < len(orders[stage]) for stage in range(stages)):
        for stage in range(stages):
            if at[stage] == len(orders[stage]):
                continue
            kind, number = orders[stage][at[stage]]
            neighbour = stage - 1 if kind == "forward" else stage + 1
            arrived = 0.0
            if 0 <= neighbour < stages:
                if (kind, neighbour, number) not in ends:
                    continue
                arrived = ends[kind, neighbour, number]
                rows.append(
                    _row(
                        stage,
                        dp_rank,
                        step,
                        f"{kind}-recv",
                        free[stage],
                        max(arrived, free[stage]),
                        number,
                        dp=0,
                    )
                )
            begin = max(free[stage], arrived)
            end = begin + (forward if kind == "forward" else backward)(stage, dp_rank, step, number)
            ends[kind, stage, number] = free[stage] = end
            rows.append(_row(stage, dp_rank, step, f"{kind}-compute", begin, end, number, dp=0))
            receiver = stage + 1 if kind == "forward" else stage - 1
            if 0 <= receiver < stages:
                rows.append(_row(stage, dp_rank, step, f"{kind}-send", end, end, number, dp=0))
            at[stage] += 1
    return max(free)
