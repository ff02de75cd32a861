"""The rank that the others wait for, the reason, and the cost of stragglers for a job.

## What it asks
- Reports with collectives, of one or more ranks each: the rank that arrives last, how long the
  others wait for it, and how its work before differs from theirs.
- One Parquet file with the operations of a pipeline-parallel job (`dp_rank`, `stage`, `rank`,
  `step`, `optype`, `start_ts`, `duration` in seconds, `seq_id`, `mc`): the length of a step without
  stragglers, and the share of the loss by kind of operation, pipeline stage and worker.

## How it is computed
**Reports.** Collectives are matched by group and sequence number, or else by operation and order if
all ranks made equally many; the answer names the way. Collectives that end at once on all ranks
(all-reduce, all-gather, reduce-scatter, barrier) align the clocks of the hosts, with an offset or a
drift if that makes the ends agree better. The transfer time of a collective is the shortest time
that a rank spent in it. A rank that spent more waited for the rank that began last. The reason
compares the work of the last rank's GPU since the previous collective with the median of the ranks.

**Operations.** The graph of the step (pipeline 1F1B: sends with their receives, collectives with
their groups, the order on each rank) is replayed with other durations. Communication counts from
the moment its last rank began it. The ideal duration of a kind is the mean of its computations, or
the median of its communication. `slowdown` is the length of a step divided by the ideal length. For
a kind, a stage or a dp rank, it is the length if all others are ideal, divided by the ideal length.
For a worker it is the lower value of its dp rank and its stage. `m_s` and `m_w` are the shares of
the loss that are regained if the last stage, or the slowest 3 % of the workers, are ideal.
Definitions: "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025.

## Traps
- Reports: if the starts differ by less than twice the error of the clocks, no rank counts as last.
  A point-to-point transfer counts as a collective of two ranks.
- Operations: the CPU time of launches is not in the replayed step; `launch_slowdown` shows how much
  longer the traced step is. Interleaved stages are rejected. Collectives of tensor-parallel ranks
  count as work of a single rank, because the trace has one rank of each group.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from warplens.errors import MissingData, ReportError
from warplens.flows import foreign
from warplens.importers.jobs import operations
from warplens.recipes.base import Answer, Summary
from warplens.recipes.collectives import answering, reading
from warplens.recipes.jobs import what_if
from warplens.recipes.jobs.what_if import Stragglers

FILES = True
_CLEAR = 1.05  # a slowdown below this is not worth a word


def part(path: Path) -> Summary:
    """Read the collectives of a report, or run the job of a file of operations again."""
    if not operations.is_operations(path):
        if path.suffix == ".parquet":
            raise ReportError(
                f"{path} is not a Parquet file of operations with the columns {', '.join(operations.COLUMNS)}"
            )
        with foreign.open(path) as report:
            return {"collectives": reading.collectives(report)}
    result = what_if.stragglers(operations.read(path))
    return {
        "job": pa.table(
            {
                "job": [path.name],
                "traced": [result.traced],
                "replayed": [result.replayed],
                "ideal": [result.ideal],
                "last_stage": pa.array([result.last_stage], pa.float64()),
                "slowest_workers": pa.array([result.slowest_workers], pa.float64()),
                "slowest": [list(result.slowest)],
            }
        ),
        "by_type": pa.table({"type": list(result.by_kind), "slowdown": list(result.by_kind.values())}),
        "by_stage": pa.table({"stage": list(result.by_stage), "slowdown": list(result.by_stage.values())}),
        "by_dp_rank": pa.table(
            {"dp_rank": list(result.by_dp_rank), "slowdown": list(result.by_dp_rank.values())}
        ),
        "by_worker": _workers(result),
    }


def answer(summary: Summary) -> Answer:
    """Say what stragglers cost, and where they are. MissingData for more than one job."""
    if "job" not in summary:
        return answering.answer(summary["collectives"])
    if summary["job"].num_rows != 1:
        raise MissingData("straggler analyses one job at a time.")
    job = summary["job"].to_pylist()[0]
    tables = {
        name: summary[name].drop_columns(["report"]).sort_by([("slowdown", "descending")])
        for name in ("by_type", "by_stage", "by_dp_rank", "by_worker")
    }
    facts: dict[str, Any] = {
        "job": job["job"],
        "step_traced_s": job["traced"],
        "step_s": job["replayed"],
        "step_ideal_s": job["ideal"],
        "slowdown": job["replayed"] / job["ideal"] if job["ideal"] else 1.0,
        "launch_slowdown": job["traced"] / job["replayed"] if job["replayed"] else 1.0,
        "m_s": job["last_stage"],
        "m_w": job["slowest_workers"],
        "slowest_workers": job["slowest"],
        "slowdown_by_type": _mapping(tables["by_type"], "type"),
        "slowdown_by_stage": _mapping(tables["by_stage"], "stage"),
        "slowdown_by_dp_rank": _mapping(tables["by_dp_rank"], "dp_rank"),
        "slowdown_by_worker": _mapping(tables["by_worker"], "rank"),
    }
    return Answer(_verdict(facts, tables), tables=tables, facts=facts)


def _workers(result: Stragglers) -> pa.Table:
    rows = [
        {
            "rank": rank,
            "dp_rank": result.place_of[rank][0],
            "stage": result.place_of[rank][1],
            "slowdown": slowdown,
        }
        for rank, slowdown in result.by_worker.items()
    ]
    return pa.Table.from_pylist(rows)


def _mapping(table: pa.Table, name: str) -> dict[str, float]:
    keys, values = table.column(name).to_pylist(), table.column("slowdown").to_pylist()
    return {str(key): value for key, value in zip(keys, values, strict=True)}


def _verdict(facts: dict[str, Any], tables: dict[str, pa.Table]) -> list[str]:
    lines = [
        f"A step takes {facts['step_s']:.3f} s; without stragglers it would take {facts['step_ideal_s']:.3f} s "
        f"(slowdown {facts['slowdown']:.2f})."
    ]
    if facts["slowdown"] < _CLEAR:
        return [*lines, "No stragglers: less than 5 % of the step is lost."]
    kind = tables["by_type"].to_pylist()[0]
    lines.append(f"By operation: {kind['type']} alone makes the step {kind['slowdown']:.2f} times as long.")
    if facts["m_s"] is not None:
        lines.append(f"The last pipeline stage explains {_percent(facts['m_s'])} of the loss.")
    if facts["m_w"] is not None:
        count = len(facts["slowest_workers"])
        ranks = ", ".join(map(str, facts["slowest_workers"][:4]))
        lines.append(
            f"The slowest {'worker' if count == 1 else f'{count} workers'} (rank {ranks}) "
            f"{'explains' if count == 1 else 'explain'} {_percent(facts['m_w'])} of it."
        )
    return lines


def _percent(share: float) -> str:
    return "all" if share >= 1 else f"{100 * share:.0f} %"
