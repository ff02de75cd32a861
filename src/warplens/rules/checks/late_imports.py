"""Modules that are imported during the training steps.

## What it looks for
Imports that began inside a step, on the thread of the steps, and together take more than 1 % of the
steps' time. Needs steps: NVTX ranges such as `step` or `iteration`, or PyTorch's `ProfilerStep#N`.

## Why it costs time
An import searches for files, reads them, loads libraries and runs the module with all of its
imports. The step waits for it, and so do all other ranks. Usually it happens in the first step,
which then says nothing about the others.

## What to do
Import at the top of the program, or call the function once before the loop. Lazy imports inside of
functions run at the first call of the function.

## When it does not apply
If the run has few steps and a fast start matters more: the imports take the same time at either
place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import needed, numbers, rows

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/using/cmdline.html#cmdoption-X"
SCOPE = "run"


def check(report: Report, selection: Selection, *, least: float = 1) -> list[Finding]:
    """Return one finding for all imports in steps.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the steps' time that they must take.
    """
    needed(report, selection, "imports", what="data on imports of Python", source="import")
    known = steps(report, selection)
    imports = rows(report, selection, "id, process, thread, name", table="imports", where="depth = 0")
    thread, start, end = (numbers(imports, name) for name in ("thread", "start", "end"))
    kept, spent = np.zeros(imports.num_rows, bool), []
    for own in np.unique(numbers(known, "thread")).tolist():
        mine = numbers(known, "thread") == own
        cover = Cover(numbers(known, "start")[mine], numbers(known, "end")[mine])
        inside = (thread == own) & (cover.within(start, start + 1) > 0)
        kept |= inside
        spent.append(Cover(start[inside], end[inside]).both(cover))
    lost = Cover(
        np.concatenate([spans.start for spans in spent]), np.concatenate([spans.end for spans in spent])
    )
    whole = Cover(numbers(known, "start"), numbers(known, "end")).total
    if not lost.total or lost.total * 100 < least * whole:
        return []
    late = imports.filter(kept).to_pylist()
    late.sort(key=lambda row: row["start"] - row["end"])
    names = list(dict.fromkeys(row["name"] for row in late))
    evidence = (
        Evidence(
            table="imports",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=f"import {row['name']}",
            process=row["process"],
            thread=row["thread"],
        )
        for row in late
    )
    return [
        Finding(
            rule="late_imports",
            subject=names[0],
            title=f"{counted(len(late), 'module')} imported in the middle of a step, {duration(lost.total)} in all",
            cause=f"Most of it: {', '.join(names[:3])}. They run when a function is first called that imports them.",
            fix="Import these modules at the top of the program, before the first step.",
            evidence=most(evidence),
            occurrences=len(late),
            bound=lost.total,
            estimate=lost.total,
            claim=lost,
        )
    ]
