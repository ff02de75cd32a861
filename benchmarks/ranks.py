"""Times `warplens recipe nvtx_sum` on reports of 10^6 ranges each, with processes and with Dask."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from _reports import make_report
from harness import Row
from warplens.handover.naming import SUMMARIES

RANKS, EVENTS, PROCESSES = 64, 1_000_000, 2
WHOLE_S, DASK_RATIO = 4.0, 1.7
ROUNDS = 3


def run(quick: bool) -> list[Row]:
    """Time whole commands; the best of three rounds, in turn."""
    ranks, events = (4, EVENTS // 20) if quick else (RANKS, EVENTS)
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        folder = Path(directory)
        first = make_report(folder / "rank0.warplens", events)
        for rank in range(1, ranks):
            shutil.copytree(first, folder / f"rank{rank}.warplens")
        with _cluster() as cluster:
            candidates: dict[str, Callable[[], float]] = {
                "floor": lambda: _floor(folder, ranks),
                **{
                    f"{count} ranks": lambda count=count: _recipe(folder, count, "--jobs", str(PROCESSES))  # type: ignore[misc]
                    for count in (ranks // 4, ranks // 2, ranks)
                },
                "dask": lambda: _recipe(folder, ranks, "--dask", cluster.scheduler_address),
                "again": lambda: _recipe(folder, ranks, "--jobs", str(PROCESSES)),
            }
            best = dict.fromkeys(candidates, float("inf"))
            for _ in range(1 if quick else ROUNDS):
                for name, timed in candidates.items():
                    if name != "again":
                        _forget(folder)
                    best[name] = min(best[name], timed())
    whole = best[f"{ranks} ranks"]
    events_text = f"{ranks} ranks × {events:,} ranges"
    return [
        Row(
            f"recipe nvtx_sum, {events_text}, {PROCESSES} processes",
            whole,
            "s",
            "DuckDB's sums of the same files, one after the other",
            best["floor"],
            None if quick else WHOLE_S,
            "value",
        ),
        *(
            Row(f"recipe nvtx_sum, {count} ranks", best[f"{count} ranks"], "s", f"{ranks} ranks", whole)
            for count in (ranks // 4, ranks // 2)
        ),
        Row(
            f"recipe nvtx_sum, {events_text}, asked again: summaries were kept",
            best["again"],
            "s",
            f"{ranks} ranks",
            whole,
        ),
        Row(
            f"recipe nvtx_sum, {events_text}, a Dask cluster of {PROCESSES} processes",
            best["dask"],
            "s",
            "processes of warplens",
            whole,
            None if quick else DASK_RATIO,
        ),
    ]


def _recipe(folder: Path, ranks: int, *words: str) -> float:
    reports = [str(folder / f"rank{rank}.warplens") for rank in range(ranks)]
    command = [sys.executable, "-m", "warplens", "recipe", "nvtx_sum", "-f", "json", *words, *reports]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _forget(folder: Path) -> None:
    """Remove the summaries that the runs before kept."""
    for kept in folder.glob(f"*/{SUMMARIES}"):
        shutil.rmtree(kept)


def _floor(folder: Path, ranks: int) -> float:
    begin = time.perf_counter()
    connection = duckdb.connect()
    for rank in range(ranks):
        (path,) = (folder / f"rank{rank}.warplens" / "tables" / "nvtx_ranges").glob("*.parquet")
        connection.execute(
            f"""SELECT message, count(*), sum("end" - start) FROM read_parquet('{path}') GROUP BY message"""
        ).fetchall()
    return time.perf_counter() - begin


def _cluster() -> Any:
    import distributed

    make: Any = distributed.LocalCluster
    return make(n_workers=PROCESSES, threads_per_worker=1, dashboard_address=":0")
