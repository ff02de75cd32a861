"""Callbacks that block asyncio's event loop for a long time.

## What it looks for
Callbacks and task steps that kept the thread of an event loop for 100 ms or more without a return
to the loop, and for more than 5 % of the judged time in total. If only one callback was ever seen
on the loop, nothing else may have had to wait: then the loop must have been blocked more than once.
Imports do not count. Needs Python samples. Callbacks of uvloop are invisible.

## Why it costs time
One thread does all the work of the loop. While a callback computes, sleeps or waits for a reply, no
other task continues: connections are not accepted, replies not read, timers late.

## What to do
Move blocking or computing code off the loop with `await asyncio.to_thread(function)` or
`loop.run_in_executor`, and code that holds the GIL into a process pool. Replace blocking libraries
by asynchronous ones (`asyncio.sleep`, `httpx.AsyncClient`, an asynchronous database driver). Put
`await asyncio.sleep(0)` into long loops. `asyncio.run(main(), debug=True)` logs such callbacks.

## When it does not apply
If the loop has nothing else to do during that time. If one function runs in many callbacks without
a pause between them, samples may take them for one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.own_code import OwnCode, nearest
from warplens.analysis.cpu.thread_time import ThreadTime
from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import ceiling, edges, rows
from warplens.rules.python_time import called, python_time

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code"
_RUNS = ("Handle._run", "_run")  # of asyncio/events.py: what calls each callback; the latter before 3.11
_TICKS = 2.5  # intervals between two samples of one callback, at most


@dataclass
class _Callback:
    """A callback that kept its loop: the stretches, their functions, and the tasks that had it."""

    stretches: list[tuple[int, int, int]] = field(default_factory=list)  # begin, end, id of the first sample
    inside: dict[str, int] = field(default_factory=dict)
    thread: int = 0
    process: int = 0


def check(report: Report, selection: Selection, *, longest: float = 100, least: float = 5) -> list[Finding]:
    """Return a finding for each callback that keeps its loop.

    Args:
        report: the report.
        selection: the part to use.
        longest: ms that the loop may be blocked.
        least: percent of the judged time that it must be blocked in total.
    """
    code, threads = python_time(report, selection)
    begin, end = edges(report, selection)
    texts, name = code.frames.texts("function")
    files, file = code.frames.texts("file")
    runs = np.array([text in _RUNS for text in texts] + [False], bool)[name]
    runs &= np.array([text.endswith("asyncio/events.py") for text in files] + [False], bool)[file]
    loops = np.array([text.endswith("asyncio/base_events.py") for text in files] + [False], bool)[file]
    if not runs.any() and not loops.any():
        raise MissingData(f"does not contain samples of asyncio{selection.place(report)}.")
    # A process that a callback forked has the loop in its stack, and below it begins anew.
    forked = np.array([text.rpartition(".")[2] == "_bootstrap" for text in texts] + [False], bool)[name]
    forked &= np.array([text.endswith("multiprocessing/process.py") for text in files] + [False], bool)[file]
    handle = nearest(code.frames.parent, runs | forked)
    handle = np.where((handle >= 0) & runs[handle], handle, -1)
    findings = []
    for time in threads:
        inside = (handle[time.stack] >= 0) & ~code.importing[time.stack]
        if not inside.any():
            continue
        callbacks, seen = _callbacks(code, handle, time, inside=inside, longest=round(longest * 1e6))
        for function, callback in callbacks.items():
            cover = Cover(
                [start for start, _, _ in callback.stretches], [last for _, last, _ in callback.stretches]
            )
            if cover.total * 100 < least * (end - begin) or (seen < 2 and len(callback.stretches) < 2):
                continue
            bound = ceiling(report, selection, cover)
            if bound:
                findings.append(
                    _finding(
                        function,
                        callback,
                        cover,
                        bound=bound,
                        waiting=_waiting(report, selection, callback, cover=cover),
                    )
                )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _callbacks(
    code: OwnCode, handle: Int64Array, time: ThreadTime, inside: npt.NDArray[np.bool_], longest: int
) -> tuple[dict[str, _Callback], int]:
    """Return slow callbacks by function, and the number of all callbacks."""
    rows_inside = np.flatnonzero(inside)
    tasks = pc.cast(time.samples["task"], "string").to_pylist()
    positions, which = np.unique(time.stack[rows_inside], return_inverse=True)
    outermost = [_outermost(code, handle, position) for position in positions.tolist()]
    innermost = [
        _named(code, int(code.own[position] if code.own[position] >= 0 else code.python[position]))
        for position in positions.tolist()
    ]
    every = np.asarray(time.samples["weight"].to_numpy(), np.int64) // np.maximum(
        time.samples["count"].to_numpy(), 1
    )
    callbacks: dict[str, _Callback] = {}
    keys = [
        (outermost[number], tasks[row])
        for number, row in zip(which.tolist(), rows_inside.tolist(), strict=True)
    ]
    first = 0
    for index in range(1, len(keys) + 1):
        row, before = (int(rows_inside[index]) if index < len(keys) else -1), int(rows_inside[index - 1])
        # the next sample is of the same callback, no other one came between, and none is missing
        if (
            row == before + 1
            and keys[index] == keys[first]
            and time.since[row] - time.until[before] <= _TICKS * every[row]
        ):
            continue
        start, last = int(time.since[rows_inside[first]]), int(time.until[before])
        if last - start >= longest:
            callback = callbacks.setdefault(
                keys[first][0], _Callback(thread=time.thread, process=time.process)
            )
            callback.stretches.append((start, last, time.samples["id"][int(rows_inside[first])].as_py()))
            for number in range(first, index):
                text, at = innermost[which[number]], int(rows_inside[number])
                callback.inside[text] = callback.inside.get(text, 0) + int(time.until[at] - time.since[at])
        first = index
    return callbacks, len(set(keys))


def _outermost(code: OwnCode, handle: Int64Array, position: int) -> str:
    """Return the callback of a stack.

    Its outermost own function below the loop, else its outermost one of Python.
    """
    top, own, at = -1, -1, position
    while at >= 0 and at != handle[position]:
        if code.python[at] == at:
            top = at
        if code.own[at] == at:
            own = at
        at = int(code.frames.parent[at])
    return _named(code, own if own >= 0 else top)


def _named(code: OwnCode, at: int) -> str:
    if at < 0:
        return "a callback"
    frame = code.frames.frame(at)
    return called(frame.function, frame.file or "")


def _waiting(report: Report, selection: Selection, callback: _Callback, cover: Cover) -> str:
    """Say which tasks could not go on meanwhile, where tasks were sampled.

    Tasks that await the blocking one wait in any case.
    """
    if not report.tables["task_samples"]:
        return "No other task of this loop ran during that time."
    where = f"state <> 'running' AND NOT \"outer\" AND thread = {callback.thread}"
    others = rows(report, selection, "number, task", table="task_samples", where=where)
    # a row lasts until the tick that saw something else, which may be late
    shortest = min(last - start for start, last, _ in callback.stretches)
    late = cover.within(others["start"].to_numpy(), others["end"].to_numpy()) > shortest // 2
    names = {
        row["number"]: row["task"] or "?"
        for row, kept in zip(others.to_pylist(), late.tolist(), strict=True)
        if kept
    }
    if not names:
        return "No other task of the loop was sampled during that time."
    shown = list(dict.fromkeys(names.values()))
    more = ", …" if len(shown) > 3 else ""
    return f"{counted(len(names), 'other task')} had to wait: {', '.join(shown[:3])}{more}."


def _finding(function: str, callback: _Callback, cover: Cover, bound: int, waiting: str) -> Finding:
    longest = max(last - start for start, last, _ in callback.stretches)
    inner = max(callback.inside, key=lambda name: callback.inside[name])
    cause = f"It did not return to the loop for up to {duration(longest)}, {duration(cover.total)} in all."
    cause += f" Most of that was in {inner}." if inner != function else ""
    return Finding(
        rule="event_loop_blocked",
        subject=function,
        title=f"{function} blocked the event loop {counted(len(callback.stretches), 'time')}, {duration(cover.total)} in all",
        cause=f"{cause} {waiting}",
        fix="Move the blocking code into a thread (asyncio.to_thread) or a process, or use an "
        "asynchronous library.",
        evidence=most(
            Evidence(
                table="samples",
                id=id_,
                start=start,
                end=last,
                text=inner,
                process=callback.process,
                thread=callback.thread,
            )
            for start, last, id_ in callback.stretches
        ),
        occurrences=len(callback.stretches),
        bound=bound,
        confidence="medium",
        claim=cover,
    )
