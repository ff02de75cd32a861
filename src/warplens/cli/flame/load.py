"""Reads the tree of samples from a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.samples import kind_of, sampled, without_idle
from warplens.analysis.cpu.stacks import StackTree, Weights, bottom_up, top_down
from warplens.cli.options.matching import matches, process_name
from warplens.errors import MissingData, UsageError

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_WHOSE = {
    "python": "Python samples of threads that ran",
    "native": "native samples",
    "osrt": "calls of the C library that were long enough for a stack",
    "wall": "Python samples of threads that ran or waited",
    "tasks": "samples of asyncio tasks that ran",
    "tasks wall": "samples of asyncio tasks that ran or waited",
}


@dataclass(frozen=True)
class Wish:
    """What the user wants to see.

    `processes` and `threads` are ids or parts of names (empty: all), `kind` None: the one there is.
    """

    by: str = "function"
    reverse: bool = False
    wall: bool = False
    kind: str | None = None
    processes: Sequence[str] = ()
    threads: Sequence[str] = ()
    per_thread: bool = False
    exceptions: bool = False


@dataclass(frozen=True)
class Flame:
    """A tree and its captions.

    `groups`: names of the tree's groups, empty if there is one; `weight`: ns in all.

    `change`: by how much the share of each node grew against a baseline, -1 to 1; None if nothing is compared.
    """

    title: str
    frames: FrameTable
    tree: StackTree
    groups: list[str]
    weight: int
    change: npt.NDArray[np.float64] | None = None


def load(report: Report, selection: Selection, wish: Wish) -> Flame:
    """Sum up the samples that are wanted.

    Raises MissingData, which names what to record or the samples that exist, and UsageError.
    """
    if wish.exceptions and wish.kind not in (None, "python"):
        raise UsageError("only Python samples show exceptions: leave out --kind.")
    kind = wish.kind or (
        "python" if wish.wall or wish.exceptions else kind_of(report) if report.tables["samples"] else None
    )
    rows = (
        None
        if kind is None
        else sampled(report, selection, kind=kind, wall=wish.wall, exceptions=wish.exceptions)
    )
    if rows is None or not rows.num_rows:
        if kind == "osrt":
            raise MissingData(
                f"{report.path.name} has no OS calls with a stack{selection.place(report)}; record "
                "with -t osrt."
            )
        if kind == "tasks":
            raise MissingData(_no_tasks(report, selection, wish))
        raise MissingData(_missing(report, selection, wish, kind=kind))
    idle = 0
    if wish.wall and kind == "python" and not (wish.threads or wish.per_thread):
        rows, idle = without_idle(report, rows)
    rows, threads = wanted_threads(report, rows, wish)
    names = {thread: number for number, thread in enumerate(threads)} if wish.per_thread else {}
    group = (
        np.array([names[thread] for thread in rows.column("thread").to_pylist()], np.int64) if names else None
    )
    frames = FrameTable.of(report)
    weights = Weights.of(frames, rows, group)
    tree = (bottom_up if wish.reverse else top_down)(frames, wish.by, weights)
    total, count = int(weights.weight.sum()), int(weights.count.sum())
    whose = _WHOSE[
        ("wall" if kind == "python" else f"{kind} wall")
        if wish.wall and kind in ("python", "tasks")
        else str(kind)
    ]
    of = (
        f"{count:,} {whose}{' and handled an exception' if wish.exceptions else ''}, {_threads(len(threads))}"
    )
    if idle:
        of += f"\n{_threads(idle)} that only waited at one place left out: --per-thread shows all"
    return Flame(
        f"{report.name}: {of}", frames, tree, groups=list(threads.values()) if names else [], weight=total
    )


def _threads(number: int) -> str:
    return f"{number:,} thread{'s' if number != 1 else ''}"


def wanted_threads(report: Report, rows: pa.Table, wish: Wish) -> tuple[pa.Table, dict[int, str]]:
    """Return the rows of the threads that are wanted, and those threads: the ones with most first."""
    processes = {row["process"]: row for row in report.table("processes").to_pylist()}
    threads = {row["thread"]: row for row in report.table("threads").to_pylist()}
    several = len(set(rows.column("process").to_pylist())) > 1
    sums = (
        rows.group_by("thread")
        .aggregate([("weight", "sum")])
        .sort_by([("weight_sum", "descending"), ("thread", "ascending")])
    )
    names: dict[int, str] = {}
    for key in sums.column("thread").to_pylist():
        thread = threads.get(key) or {"tid": key, "name": None, "process": -1}
        process = processes.get(thread["process"]) or {"pid": 0, "executable": "", "command": ""}
        if matches(thread, "tid", wish.threads, name=thread["name"] or "") and matches(
            process, "pid", wish.processes, name=process_name(process)
        ):
            own = f"{thread['name'] or 'thread'} {thread['tid']}"
            names[key] = f"{process_name(process)} {process['pid']}: {own}" if several else own
    if not names:
        named = ", ".join((*wish.processes, *wish.threads))
        raise MissingData(f"no process or thread of {report.path.name} with samples is called {named}.")
    return rows.filter(pc.is_in(rows.column("thread"), value_set=pa.array(list(names), pa.int64()))), names


def _no_tasks(report: Report, selection: Selection, wish: Wish) -> str:
    place = selection.place(report)
    if not wish.wall and sampled(report, selection, kind="tasks", wall=True).num_rows:
        return f"{report.path.name} only has samples of waiting tasks{place}; --wall shows them."
    return (
        f"{report.path.name} has no samples of asyncio tasks{place}; record a program that uses "
        "asyncio, with CPython 3.11 or later "
        "and --python-sampling=true."
    )


def _missing(report: Report, selection: Selection, wish: Wish, kind: str | None) -> str:
    if not report.tables["samples"]:
        return (
            f"{report.path.name} has no samples; record with `warplens profile "
            "--sample=process-tree --python-sampling=true` "
            "(`warplens doctor` says what is possible here)."
        )
    if wish.exceptions:
        if not report.sql("SELECT 1 FROM samples WHERE exception IS NOT NULL LIMIT 1").num_rows:
            return (
                f"{report.path.name} does not say which threads handled an exception: record it "
                "again with --python-sampling=true."
            )
        return f"no thread of {report.path.name} has a sample that handled an exception{selection.place(report)}."
    there = [
        each for each in ("python", "native") if sampled(report, selection, kind=each, wall=True).num_rows
    ]
    place = selection.place(report)
    if not there:
        return f"{report.path.name} has no samples{place}."
    if kind in there and not wish.wall:
        return f"{report.path.name} only has samples of waiting threads{place}; --wall shows them."
    return f"{report.path.name} has no {kind} samples{place}; it has {' and '.join(there)} ones."
