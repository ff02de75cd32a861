"""CPU time of the answer of recipes over the summaries of up to 16,384 simulated ranks: merging, and what follows."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from harness import Row
from warplens import catalog
from warplens.recipes import merging
from warplens.recipes.base import Summary
from warplens.recipes.over_time import STRETCHES

RANKS = (1_024, 4_096, 16_384)
_NAMES, _COLLECTIVES, _STEP_NS = 100, 200, 10_000_000
_HOST = 8  # ranks


def run(quick: bool) -> list[Row]:
    """Measure each number of ranks in a separate process, for the memory."""
    rows: list[Row] = []
    counts = (64, 256) if quick else RANKS
    for recipe in _SUMMARIES:
        first: float | None = None
        for count in counts:
            command = [sys.executable, str(Path(__file__)), recipe, str(count)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds, peak = map(float, text.split())
            rows.append(
                Row(
                    f"recipe {recipe}, answer over {count:,} simulated ranks",
                    seconds,
                    "s",
                    "" if first is None else f"{counts[0]:,} ranks",
                    first,
                    note=f"{peak:,.0f} MiB",
                )
            )
            first = first if first is not None else seconds
    return rows


def _sums(rank: int, random: np.random.Generator) -> Summary:
    total = random.integers(10**6, 10**9, _NAMES)
    names = [f"kernel {number}" for number in range(_NAMES)]
    table = pa.table({"Time (%)": 100 * total / total.sum(), "Total Time (ns)": total, "Name": names})
    return {"rows": table, "reports": _named(rank)}


def _map(rank: int, random: np.random.Generator) -> Summary:
    place = {"process": [0], "device": [rank % _HOST], "rank": [rank], "host": [f"host{rank // _HOST}"]}
    values = pa.array([random.random(STRETCHES, np.float32) * 100], pa.list_(pa.float32()))
    return {"gpus": pa.table({**place, "begin": [0], "end": [10**10], "values": values})}


def _collectives(rank: int, random: np.random.Generator) -> Summary:
    step = np.arange(_COLLECTIVES)
    start = step * _STEP_NS + random.integers(0, 50_000, _COLLECTIVES) + (400_000 if rank == 5 else 0)
    end = (step + 1) * _STEP_NS - 1_000_000 + random.integers(0, 3_000, _COLLECTIVES)
    same = dict.fromkeys(("process", "device"), np.zeros(_COLLECTIVES, np.int64))
    return {
        "collectives": pa.table(
            {
                **same,
                "rank": np.full(_COLLECTIVES, rank),
                "host": [f"host{rank // _HOST}"] * _COLLECTIVES,
                "name": ["all_reduce"] * _COLLECTIVES,
                "group": ["world"] * _COLLECTIVES,
                "sequence": step,
                "step": step,
                "start": start,
                "end": end,
                "before: GPU work": random.integers(8 * 10**6, 9 * 10**6, _COLLECTIVES),
            }
        )
    }


def _named(rank: int) -> pa.Table:
    return pa.table({"name": [f"rank{rank}.warplens"], "rank": pa.array([rank], pa.int64())})


_SUMMARIES: dict[str, Callable[[int, np.random.Generator], Summary]] = {
    "sums": _sums,
    "gpu_time_util_map": _map,
    "straggler": _collectives,
}


def measured(recipe: str, count: int) -> tuple[float, float]:
    """Return seconds of merging and answering, and MiB of the process at most."""
    random = np.random.default_rng(1)
    question = catalog.find("recipes.questions", recipe).load()
    parts = [merging.numbered(_SUMMARIES[recipe](rank, random), rank) for rank in range(count)]
    begin = time.process_time()
    question.answer(merging.in_order(merging.tree(parts, merging.merge_of(question))))
    seconds = time.process_time() - begin
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(*measured(sys.argv[1], int(sys.argv[2])))
