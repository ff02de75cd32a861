"""Divides the time of one GPU: operations by name, idle time by the host's activity or the cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import warplens.report.arrow_compute as pc
from warplens.analysis.comparison.host_time import CauseTime, host_time, stretches_of
from warplens.analysis.cpu.culprits import API
from warplens.analysis.dictionaries import codes
from warplens.analysis.flatten import outermost
from warplens.analysis.gpu.idle import idle
from warplens.analysis.gpu.kernel_classes import class_of
from warplens.analysis.gpu.ops import KERNEL, MEMORY, during, operations
from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_IDLE = "GPU idle: "
COMPUTE, ALONE = "kernel", {"communication": "communication alone", "memory": "copy alone"}
_HOST = ("host-bound", "head", "tail")  # the host had not launched anything
_CALLS = ("sync-bound", "launch-bound")  # the host was in a call, or behind one


def gpu_time(
    report: Report, selection: Selection, place: tuple[int, int], thread: int
) -> Iterator[CauseTime]:
    """Yield the parts of a GPU's time in the selection; they add up to it.

    `place`: process, device.

    What overlaps counts as compute first, then as communication, then as copies; of several kernels the one that began first. Time
    without work is divided by what the host did where it was late (`thread`: asked where no other is known), else it has its cause.
    """
    yield from _ran(report, selection, place)
    rows = idle(report, selection)
    rows = rows.filter(pc.and_(pc.equal(rows["process"], place[0]), pc.equal(rows["device"], place[1])))
    cause = np.asarray(pc.cast(rows["cause"], "string").to_numpy(zero_copy_only=False))
    start, end = (np.asarray(rows[name].to_numpy(), np.int64) for name in ("start", "end"))
    who = np.asarray(pc.fill_null(rows["thread"], thread).to_numpy(), np.int64)
    for text in np.unique(cause).tolist() if len(cause) else ():
        mine = cause == text
        if text not in (*_HOST, *_CALLS):
            yield CauseTime(f"{_IDLE}{text}", "", "", ns=int((end - start)[mine].sum()), variance=0.0)
            continue
        for spent in host_time(report, stretches_of(who[mine], start[mine], end[mine])):
            if text in _HOST:
                yield spent
            else:
                call = spent.name if spent.kind == API else ""
                yield CauseTime(
                    f"{_IDLE}{text}", "", f"most in {call}" if call else "", ns=spent.ns, variance=0.0
                )


def _ran(report: Report, selection: Selection, place: tuple[int, int]) -> Iterator[CauseTime]:
    window = selection.window(report) or report.span
    where = f"process = {place[0]} AND device = {place[1]} AND {during(report, selection)}"
    rows = report.sql(
        f"""SELECT "start", "end", category, operation FROM {operations()} WHERE {where} ORDER BY "start", "end" DESC"""
    )
    start, end = (np.clip(np.asarray(rows[name].to_numpy(), np.int64), *window) for name in ("start", "end"))
    (category, categories), (operation, names) = (
        codes(rows[name].combine_chunks()) for name in ("category", "operation")
    )
    texts = [name or "[no name]" for name in names.to_pylist()] + ["[no name]"]
    talks = np.array([class_of(text) == "communication" for text in texts])[operation]
    listed = categories.to_pylist()
    is_kernel = np.array([text == KERNEL for text in listed] + [False])[category]
    memory = np.array([text == MEMORY for text in listed] + [False])[category]
    talks &= is_kernel
    taken = Cover([], [])
    for chosen, kind in (
        (~memory & ~talks, COMPUTE),
        (talks, ALONE["communication"]),
        (memory, ALONE["memory"]),
    ):
        mine = np.flatnonzero(chosen & (end > start))
        which, first, last = outermost(start[mine], end[mine])
        length = (last - first) - taken.within(first, last)
        sums = np.bincount(operation[mine][which], length.astype(np.float64), len(texts))
        for code in np.flatnonzero(sums).tolist():
            yield CauseTime(kind, texts[code], "", ns=int(sums[code]), variance=0.0)
        taken = _joined(taken, first, last)


def _joined(cover: Cover, start: Int64Array, end: Int64Array) -> Cover:
    return Cover(np.concatenate((cover.start, start)), np.concatenate((cover.end, end)))
