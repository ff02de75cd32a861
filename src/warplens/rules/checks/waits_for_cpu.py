"""Threads that were ready to run but had no CPU.

## What it looks for
Threads that were runnable but did not run for more than 5 % of the judged time: the scheduler had
given the CPUs to other threads. Needs thread states. The CPU use of other processes is known if the
launcher read the machine's load.

## Why it costs time
More threads want to run than there are CPUs, so they take turns. Each takes longer, and so does
everything that waits for it. The main thread waits like all others.

## What to do
Start at most as many threads in total as there are CPUs: processes times threads per process.
NumPy, PyTorch and OpenMP start one thread per CPU in every process: set `OMP_NUM_THREADS=1` if
there are several processes, or use fewer workers (`num_workers`, `n_jobs`, `pytest -n`). If other
programs use the machine, run at another time.

## When it does not apply
If all CPUs do useful work all the time, fewer threads are equally fast, not faster. If the thread
has nothing urgent to do.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from warplens.analysis.intervals import Cover
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import capital, edges, rows, threads
from warplens.rules.machine import ThreadLoad, cpus, loads, used

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html#utilize-openmp"
_BUSY = 0.25  # share of the machine from which on others matter
_FULL = 0.9


def check(report: Report, selection: Selection, *, least: float = 5) -> list[Finding]:
    """Return one finding for the CPUs.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time that a thread must have waited for a CPU.
    """
    known = loads(report, selection)
    begin, end = edges(report, selection)
    span = end - begin
    starved = [load for load in known if load.runnable * 100 >= least * span]
    if not starved:
        return []
    worst = starved[0]
    processes = {
        row["process"]: row for row in report.table("processes", ["process", "name", "pid"]).to_pylist()
    }
    name = processes.get(worst.process, {}).get("name") or "a process"
    who = threads(report).get(worst.thread, "a thread")
    bound = min(worst.runnable, span)
    cause, fix = _words(
        report,
        selection,
        known,
        starved=starved,
        names={key: row["name"] or "?" for key, row in processes.items()},
        span=span,
    )
    of_worst = f"state = 'runnable' AND thread = {worst.thread} AND \"start\" < {worst.until}"
    evidence = rows(
        report, selection, "id, process, thread", table="thread_states", where=of_worst
    ).to_pylist()
    return [
        Finding(
            rule="waits_for_cpu",
            subject="a free CPU",
            title=f"{capital(who)} of {name} waited {duration(bound)} for a CPU",
            cause=cause,
            fix=fix,
            evidence=most(
                Evidence(
                    table="thread_states",
                    id=row["id"],
                    start=row["start"],
                    end=row["end"],
                    text="could run",
                    process=row["process"],
                    thread=row["thread"],
                )
                for row in evidence
            ),
            occurrences=len(evidence),
            bound=bound,
            confidence="medium",
            claim=Cover([row["start"] for row in evidence], [row["end"] for row in evidence]),
        )
    ]


def _words(
    report: Report,
    selection: Selection,
    known: list[ThreadLoad],
    starved: list[ThreadLoad],
    names: dict[int, str],
    span: int,
) -> tuple[str, str]:
    """Return the cause and the fix.

    This run wants more CPUs than there are, others use them, or a limit keeps them away.
    """
    there = cpus(report)
    wanted = sum(load.running + load.runnable for load in known) / span
    own, others = used(report, selection, sum(load.running for load in known))
    threads_of = Counter(names.get(load.process, "?") for load in starved)
    processes_of = Counter(names.get(process, "?") for process in {load.process for load in starved})
    who = ", ".join(
        f"{counted(number, 'thread')} of {name}"
        + (f" in {counted(processes_of[name], 'process')}" if processes_of[name] > 1 else "")
        for name, number in threads_of.most_common(3)
    )
    cause = (
        f"On average {wanted:.1f} threads of this run wanted one of {counted(there, 'CPU')}: {who} waited."
    )
    if others is not None:
        cause += f" Other processes on the machine used {others:.1f} CPUs."
    if wanted > there:
        return (
            cause,
            "Start fewer threads: processes times OMP_NUM_THREADS no more than the CPUs; fewer workers in pools and loaders.",
        )
    if others is not None and others >= _BUSY * there:
        return (
            cause,
            "Run it while others do not use the machine, or reserve CPUs for it (taskset, a cgroup).",
        )
    if others is not None and own + others < _FULL * there:
        cause += f" Only {own + others:.1f} CPUs were in use in total."
        return (
            cause,
            "A limit may keep it from CPUs that are free: cpu.max of its cgroup (docker --cpus), or an affinity (taskset).",
        )
    return cause, "Start fewer threads at a time: when several of them become ready at once, they take turns."
