"""A framework keeps compiling after the warm-up.

## What it looks for
Python samples in the compilers of torch.compile, JAX, Triton, Numba and TensorFlow after the start.
The start ends with the third step: a named step, or the third run of a kernel that runs once per
step. For JAX and others without such a kernel, it ends when the longest compilation has ended. Only
lines of the program count that had compiled something before. Together these compilations must take
at least 2 % of the time.

## Why it costs time
Compiling takes seconds, a compiled step milliseconds, and the GPU is idle while the host compiles.
Compiled code is valid for the shapes, types and Python values that the compiler saw (its guards). A
new shape, or a Python number that changes from step to step, makes it compile again. After 8 times
(`recompile_limit`) torch.compile gives up and runs the function uncompiled.

## What to do
Find the reason: `TORCH_LOGS=recompiles`, `jax.config.update("jax_log_compiles", True)`. Keep
changing values out of the guards: a tensor instead of a Python number; `torch._dynamo.mark_dynamic`
or `dynamic=True` for sizes; shapes padded to a few sizes; the last batch dropped
(`drop_last=True`). In JAX, pad shapes, and make only values that hardly change static arguments.

## When it does not apply
If the same line does something new for the first time, such as the first evaluation. If each shape
recurs often in a long run, the compilations end. The times come from Python samples: each
compilation is off by about 10 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.analysis.steps.steps import steps
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.report.selection import Selection
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.compiling import Compiling, compiling
from warplens.rules.hosts import edges, idle, numbers

if TYPE_CHECKING:
    from warplens.report import Report

LINK = "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html#dealing-with-recompilations"
SCOPE = "run"
_FEWEST = 5  # times that a kernel must come to say what a step is
_ADVICE = {
    "torch.compile": "See TORCH_LOGS=recompiles. Tensors instead of Python numbers that change, mark_dynamic for sizes, padded shapes.",
    "JAX": "See jax_log_compiles. Pad shapes to a few, drop the last batch, and make no changing value a static argument.",
}


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 2) -> list[Finding]:
    """Return a finding for each process that goes on compiling.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of stretches kept as evidence.
        least: percent of the judged time that compiling must take after the start.
    """
    if (
        not report.tables["samples"]
        or not report.sql("SELECT 1 FROM samples WHERE kind = 'python' LIMIT 1").num_rows
    ):
        raise MissingData(f"does not contain Python samples{selection.place(report)}.")
    begin, end = edges(report, selection)
    gpu = idle(report, selection, whole=True)
    stretches = compiling(report, Selection())  # what was compiled before the selected part was compiled, too
    findings = []
    for process in sorted(_working(report) & {stretch.process for stretch in stretches}):
        again = _again(report, [stretch for stretch in stretches if stretch.process == process])
        again = [stretch for stretch in again if stretch.end > begin and stretch.start < end]
        cover = Cover(
            [max(stretch.start, begin) for stretch in again], [min(stretch.end, end) for stretch in again]
        )
        lost = cover if gpu is None else cover.both(gpu)
        if lost.total and lost.total * 100 >= least * (end - begin):
            findings.append(_finding(again, cover, lost, rows=rows))
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _working(report: Report) -> set[int]:
    """Return the processes that gave work to a GPU, all where none did; others compile for them."""
    gave = report.sql("SELECT process FROM kernels UNION SELECT process FROM graphs").column(0).to_pylist()
    return set(gave or report.table("processes", ["process"]).column(0).to_pylist())


def _again(report: Report, own: list[Compiling]) -> list[Compiling]:
    """Return the stretches in which a process compiled again after the start.

    Again: for a line that had been compiled for.
    """
    sums: dict[str, int] = {}
    for stretch in own:
        sums[stretch.line] = sums.get(stretch.line, 0) + stretch.end - stretch.start
    main = max(sums, key=lambda line: (line != "", sums[line]))
    started = min((stretch for stretch in own if stretch.line == main), key=lambda stretch: stretch.start).end
    third = _third_step(
        report, own[0].process, Cover([each.start for each in own], [each.end for each in own])
    )
    if third is not None:
        started = max(started, third)
    elif (
        own[0].compiler == "torch.compile"
    ):  # it compiles a function in pieces: nothing says when the first step ends
        return []
    known = {stretch.line for stretch in own if stretch.start < started}
    return [stretch for stretch in own if stretch.start >= started and stretch.line in known]


def _third_step(report: Report, process: int, compiled: Cover) -> int | None:
    """Return when the third step of a process began, ns.

    None where neither names nor kernels say it. `compiled`: when it compiled.
    """
    try:
        known = steps(report, Selection())
        start = numbers(known, "start")[numbers(known, "process") == process]
        if len(start) >= _FEWEST:
            return int(start[2])
    except MissingData:
        pass
    kernels = report.sql(
        f"""SELECT "start", dense_rank() OVER (ORDER BY demangled::VARCHAR) - 1 AS name FROM kernels WHERE process = {process}
            ORDER BY "start" """
    )
    start, name = (numbers(kernels, column) for column in ("start", "name"))
    outside = compiled.within(start, start + 1) == 0  # compilers try out what they made
    return third_of_loop(start[outside], name[outside])


def third_of_loop(start: Int64Array, name: Int64Array) -> int | None:
    """Return when the third iteration began of a loop that most kernels are in.

    None where there is none.

    `start`, `name`: of the kernels, in order. A kernel runs once in each iteration where it comes again after the same number of others.
    The main loop of `analysis.steps.loops` begins later: with the longest run of iterations that nothing breaks, as compiling does.
    """
    best: tuple[int, int] | None = None
    order = np.argsort(name, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(name[order])) + 1) if len(order) >= _FEWEST else ():
        if len(places) < _FEWEST:
            continue
        spacing = np.diff(places)
        usual = int(np.median(spacing))
        regular = np.abs(spacing - usual) * 20 <= usual
        if 2 * regular.sum() < len(spacing) or 2 * len(places) * usual < len(start):
            continue
        third = int(start[places[min(int(np.argmax(regular)) + 2, len(places) - 1)]])
        if best is None or (usual, -third) > best:
            best = usual, -third
    return None if best is None else -best[1]


def _finding(again: list[Compiling], cover: Cover, lost: Cover, rows: int) -> Finding:
    sums: dict[str, int] = {}
    for stretch in again:
        sums[stretch.line] = sums.get(stretch.line, 0) + stretch.end - stretch.start
    named = [line for line in sorted(sums, key=lambda line: -sums[line]) if line]
    compiler = again[0].compiler
    most_of_it = "".join(f"; {line} {duration(sums[line])}" for line in named[:3])
    where = f" for {named[0]}" if named else ""
    gap = f" GPUs had nothing to do for {duration(lost.total)} of it." if lost.total < cover.total else ""
    since = duration(max(stretch.end for stretch in again) - min(stretch.start for stretch in again))
    evidence = (
        Evidence(
            table="samples",
            id=each.sample,
            start=each.start,
            end=each.end,
            text=f"{each.compiler} compiles{about}",
            process=each.process,
            thread=each.thread,
        )
        for each in again
        for about in (f" for {each.line}" if each.line else "",)
    )
    return Finding(
        rule="recompilation",
        subject=named[0].partition(" ")[0] if named else compiler,
        title=f"{compiler} compiled again{where} after the start, {duration(cover.total)} in all",
        cause=f"Samples were in the compiler in {counted(len(again), 'stretch')} within {since}{most_of_it}.{gap}",
        fix=_ADVICE.get(compiler, "Keep shapes, types and static values the same from step to step."),
        evidence=most(evidence, rows),
        occurrences=len(again),
        bound=lost.total,
        estimate=lost.total,
        confidence="medium",
        claim=lost,
    )
