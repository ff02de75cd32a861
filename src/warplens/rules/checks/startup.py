"""The program starts slowly: imports, compilation, slow first iterations.

## What it looks for
If the run has a main loop (named steps, or kernels that repeat): the time from the start of the
process to the first usual iteration, divided among the activities of the leading thread. Otherwise
the imports of all processes, each module once with all of its imports. It is reported from 200 ms
and 10 % of the run.

## Why it costs time
Each start pays it: each experiment, worker, restart and test run. In a long run it hardly matters.

## What to do
Import less and later: `python -X importtime` lists the modules. Processes of a pool import the same
modules again as their parent: start them with `fork`, or with `forkserver` and
`multiprocessing.set_forkserver_preload`. Keep compiled code (`TORCHINDUCTOR_CACHE_DIR`,
`TRITON_CACHE_DIR`, `CUDA_CACHE_PATH`, `JAX_COMPILATION_CACHE_DIR`).

## When it does not apply
If the run was shortened for the recording, start-up looks larger than it will be. A recording
cannot show how much of it is avoidable, so the finding promises no saving.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.culprits import IMPORT, NATIVE, UNKNOWN, culprits
from warplens.analysis.intervals import Cover
from warplens.analysis.steps.loops import MainLoop, main_loop
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import edges, leading, numbers, rows

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/using/cmdline.html#cmdoption-X"
SCOPE = "run"
_NAMED = 3  # parts that the title names


def check(report: Report, selection: Selection, *, least: float = 10, shortest: float = 200) -> list[Finding]:
    """Return one finding about the start of the program.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time that it must take.
        shortest: ms that it must take.
    """
    begin, end = edges(report, selection)
    enough = max(least * (end - begin) / 100, shortest * 1e6)
    loop = main_loop(report, selection)
    findings = _imports(report, selection) if loop is None else _before(report, selection, loop, begin=begin)
    return [finding for finding in findings if (finding.bound or 0) >= enough]


def _before(report: Report, selection: Selection, loop: MainLoop, begin: int) -> list[Finding]:
    """Return what the leading thread of the loop's process did before it."""
    started = report.sql(f'SELECT "start" FROM processes WHERE process = {loop.process}').column(0)[0].as_py()
    first = max(begin, started) if started is not None else begin
    thread = leading(report, selection).get(loop.process)
    if thread is None or loop.begin <= first:
        return []
    sums: Counter[str] = Counter()
    for culprit in culprits(report, thread, begin=first, end=loop.begin):
        if culprit.kind != UNKNOWN:
            sums[
                f"import {culprit.name}" if culprit.kind == IMPORT else _plain(culprit.kind, culprit.name)
            ] += culprit.time
    took = loop.begin - first
    slow = (
        f" Its first {counted(loop.skipped, loop.name or 'iteration')} were slower than usual."
        if loop.skipped
        else ""
    )
    return [
        Finding(
            rule="startup",
            subject="start-up",
            title=f"Start-up took {duration(took)} before the main loop{_list(sums, took)}",
            cause=f"The main loop ({counted(loop.iterations, loop.name or 'iteration')} of "
            f"{duration(loop.usual)}) began {duration(took)} after "
            f"the process.{slow}",
            fix="Import less and later, start workers from a process that has imported already, keep what is compiled between runs.",
            evidence=_evidence(report, selection, [thread], before=loop.begin),
            occurrences=1,
            bound=took,
            estimate=0,  # it happens once: a long run hardly notices it
        )
    ]


def _imports(report: Report, selection: Selection) -> list[Finding]:
    """Return what the imports of all processes took."""
    if not report.tables["imports"]:
        raise MissingData(f"does not contain a main loop or imports of Python{selection.place(report)}.")
    table = rows(report, selection, "process, thread, name", table="imports", where="depth = 0")
    first, (start, end) = _first_thread(report), (numbers(table, name) for name in ("start", "end"))
    mine = numbers(table, "thread") == first
    waits = rows(
        report, selection, "thread", table="thread_states", where=f"thread = {first} AND state = 'blocked'"
    )
    blocked = Cover(numbers(waits, "start"), numbers(waits, "end"))
    # What other processes import counts while the first one waits: a pool of workers that imports, not compilers in the background.
    known = [Cover(start[mine], end[mine]), Cover(start[~mine], end[~mine]).both(blocked)]
    cover = Cover(*(np.concatenate([getattr(part, edge) for part in known]) for edge in ("start", "end")))
    spent = cover.total
    counted_in = mine | (cover.within(start, end) * 2 > end - start)
    sums: Counter[str] = Counter()
    for name, took in zip(
        table.column("name").filter(pa.array(counted_in)).to_pylist(),
        (end - start)[counted_in].tolist(),
        strict=True,
    ):
        sums[f"import {name.partition('.')[0]}"] += took
    processes = len(np.unique(numbers(table, "process")[counted_in]))
    several = f" in {counted(processes, 'process')}" if processes > 1 else ""
    again = sum(count > 1 for count in Counter(table.column("name").to_pylist()).values())
    repeated = (
        f" {counted(again, 'module')} were imported in more than one of them."
        if processes > 1 and again
        else ""
    )
    return [
        Finding(
            rule="startup",
            subject="imports",
            title=f"Imports took {duration(spent)}{several}{_list(sums, spent)}",
            cause=f"Modules were imported for {duration(spent)} of the run{several}. Those of other processes count while the "
            f"first one waited.{repeated}",
            fix="Import less and later (python -X importtime lists the modules), or start workers from a "
            "process that has imported already.",
            evidence=_evidence(
                report, selection, np.unique(numbers(table, "thread")).tolist(), before=1 << 62
            ),
            occurrences=table.num_rows,
            bound=spent,
        )
    ]


def _first_thread(report: Report) -> int:
    """Return the main thread of the program that was started first, else its first thread.

    -1: none is known.
    """
    order = 'p."start" NULLS LAST, p.process, t.tid = p.pid DESC, t.thread'
    starts = f"SELECT t.thread FROM threads t JOIN processes p USING (process) ORDER BY {order} LIMIT 1"
    known = report.sql(starts).column(0).to_pylist()
    return int(known[0]) if known else -1


def _list(sums: Counter[str], whole: int) -> str:
    """Return the largest parts: `: import torch 7.7 s, import numpy 0.5 s`."""
    shown = [f"{name} {duration(spent)}" for name, spent in sums.most_common(_NAMED) if spent * 20 >= whole]
    return f": {', '.join(shown)}" if shown else ""


def _plain(kind: str, name: str) -> str:
    return name if name and kind != NATIVE else f"{kind} {name}".strip()


def _evidence(
    report: Report, selection: Selection, threads: Iterable[int], before: int
) -> tuple[Evidence, ...]:
    """Return the longest imports of some threads that began before a time."""
    if not report.tables["imports"]:
        return ()
    where = f"""depth = 0 AND thread IN ({", ".join(map(str, threads))}) AND "start" < {before}"""
    table = rows(report, selection, "id, process, thread, name", table="imports", where=where)
    return most(
        Evidence(
            table="imports",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=f"import {row['name']}",
            process=row["process"],
            thread=row["thread"],
        )
        for row in table.to_pylist()
    )
