"""Divides training steps.

Each ns is in one part, by the host's work, and in one state, by the work of the GPUs.

What the host did is what it did on the step's thread: the innermost range, or waiting call of CUDA, whose part is known. Where there is
none, the framework's operations before the first one of the backward pass are `forward`; then a backward pass on another thread counts
(PyTorch's engine has separate threads). What is left between two stretches of one part, such as Python between two operations, belongs
to it; the rest is `other`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.kernel_classes import classes
from warplens.analysis.gpu.ops import operations
from warplens.analysis.gpu.waiting_calls import waits
from warplens.analysis.step_functions import NOTHING, StepFunction, grouped_union
from warplens.analysis.steps.names import NAMED, PARTS, part_of
from warplens.arrays import Int64Array, distinct
from warplens.report.columns import integers
from warplens.report.selection import overlap

if TYPE_CHECKING:
    from warplens.report.report import Report

STATES = ("compute", "communication", "memory", "idle")
"""What the GPUs of the process did: where several things, the first of these."""

_FILLED = tuple(PARTS.index(part) for part in ("data", "forward", "backward", "optimizer"))
_WAIT, _OTHER = PARTS.index("wait"), PARTS.index("other")


@dataclass(frozen=True)
class Parts:
    """`time[step, part, state]`: ns.

    `launched[step, part]`: ns in which GPUs did what was launched in it. `gpu`: there are GPUs.
    """

    steps: pa.Table
    time: Int64Array
    launched: Int64Array
    gpu: bool


def parts(report: Report, steps: pa.Table, named: Mapping[str, str] | None = None) -> Parts:
    """Take steps apart, as `analysis.steps.steps.steps` returns them.

    `named`: name of a range -> its part, beside those that are known.
    """
    time = np.zeros((steps.num_rows, len(PARTS), len(STATES)), np.int64)
    launched = np.zeros((steps.num_rows, len(PARTS)), np.int64)
    process = integers(steps, "process")
    gpu = False
    for key in np.unique(process).tolist():
        rows = np.flatnonzero(process == key)
        divided = _StepsOfProcess(report, key, steps.take(pa.array(rows)), named=named or {})
        time[rows], launched[rows], has_gpu = divided.parts()
        gpu |= has_gpu
    return Parts(steps, time, launched, gpu=gpu)


class _StepsOfProcess:
    """The steps of one process, all on one thread."""

    def __init__(self, report: Report, process: int, steps: pa.Table, named: Mapping[str, str]) -> None:
        self._report, self._process, self._named = report, process, named
        self._start, self._end = integers(steps, "start"), integers(steps, "end")
        self._thread = steps.column("thread")[0].as_py()
        self._where = f"process = {process} AND {overlap(int(self._start[0]), int(self._end[-1]))}"

    def parts(self) -> tuple[Int64Array, Int64Array, bool]:
        host, work = self._host(), self._work()
        state, start, end = (integers(work, name) for name in ("state", "start", "end"))
        # Compute wins over communication, communication over memory, where they overlap: `over` keeps what is there already.
        gpu = StepFunction.where(start[state == 0], end[state == 0], 0)
        for kind in (1, 2):
            gpu = gpu.over(StepFunction.where(start[state == kind], end[state == kind], kind))
        edges = self._edges(host.time, gpu.time)
        step = self._step(edges)
        part, doing = host.at(edges), gpu.at(edges)
        length, inside = np.diff(edges, append=edges[-1:]), step >= 0
        time = np.zeros((len(self._start), len(PARTS), len(STATES)), np.int64)
        # Between two edges the step, the part and the state are constant, so each stretch adds its length to one cell [step, part, state].
        np.add.at(
            time,
            (step[inside], part[inside], np.where(doing < 0, len(STATES) - 1, doing)[inside]),
            length[inside],
        )
        return time, self._launched(host, work), bool(work.num_rows)

    def _host(self) -> StepFunction:
        """The part at each time within steps."""
        ranges, backward = self._ranges(), self._operations(backward=True)
        own = np.asarray(integers(ranges, "thread") == self._thread)
        mine = np.asarray(integers(backward, "thread") == self._thread)
        calls = self._waits()
        part = np.array([PARTS.index(part) for part in ranges.column("part").to_pylist()], np.int64)
        start, end = (
            np.concatenate(
                (integers(ranges, edge)[own], integers(backward, edge)[mine], integers(calls, edge))
            )
            for edge in ("start", "end")
        )
        what = np.concatenate(
            (part[own], np.full(mine.sum(), PARTS.index("backward")), np.full(calls.num_rows, _WAIT))
        )
        pieces = StepFunction.nested(start, end, what)
        elsewhere = ~own & (part == PARTS.index("backward"))
        other_start, other_end = (
            np.concatenate((integers(ranges, edge)[elsewhere], integers(backward, edge)[~mine]))
            for edge in ("start", "end")
        )
        if PARTS.index("forward") not in part:
            every = np.concatenate(
                (integers(backward, "start"), integers(ranges, "start")[part == PARTS.index("backward")])
            )
            pieces = pieces.over(self._forward(every))
        return self._filled(pieces.over(StepFunction.where(other_start, other_end, PARTS.index("backward"))))

    def _forward(self, backward: Int64Array) -> StepFunction:
        """Operations on the steps' thread before the first of the backward pass in their step.

        All of a step without one.
        """
        rows = self._operations(backward=False)
        start, end = integers(rows, "start"), integers(rows, "end")
        limit = self._end.copy()
        step = self._step(backward)
        # limit[s]: the first begin of a backward operation in step s, or the end of the step.
        np.minimum.at(limit, step[step >= 0], backward[step >= 0])
        of = self._step(start)
        kept = (of >= 0) & (integers(rows, "thread") == self._thread) & (start < limit[np.maximum(of, 0)])
        return StepFunction.where(start[kept], end[kept], PARTS.index("forward"))

    def _filled(self, pieces: StepFunction) -> StepFunction:
        """Give what lies between two stretches of one part to it, and the rest to `other`."""
        time = self._edges(pieces.time)
        step, part = self._step(time), pieces.at(time)
        place = np.arange(len(time))
        phase = np.isin(part, _FILLED) & (step >= 0)
        # For each stretch, the nearest one with a phase before it and behind it. Between two of one phase, in one step, it takes that one.
        before = np.maximum.accumulate(np.where(phase, place, -1))
        behind = np.minimum.accumulate(np.where(phase, place, len(time))[::-1])[::-1]
        first, last = np.maximum(before, 0), np.minimum(behind, len(time) - 1)
        between = (before >= 0) & (behind < len(time)) & (part == NOTHING) & (part[first] == part[last])
        between &= (step[first] == step) & (step[last] == step)
        return StepFunction(time, np.where(between, part[first], np.where(part == NOTHING, _OTHER, part)))

    def _launched(self, host: StepFunction, work: pa.Table) -> Int64Array:
        """For how long GPUs did what was launched in each part of each step, by whichever thread."""
        called = integers(work, "called")
        step = self._step(called)
        kept = (step >= 0) & (called >= 0)
        # (step, part) in one number; `grouped_union` counts overlapping work within a cell once.
        group = step[kept] * len(PARTS) + host.at(called[kept])
        covered = grouped_union(
            group,
            integers(work, "start")[kept],
            integers(work, "end")[kept],
            groups=len(self._start) * len(PARTS),
        )
        return covered.reshape(len(self._start), len(PARTS))

    def _ranges(self) -> pa.Table:
        """Ranges whose part is known: thread, start, end, part.

        Of push/pop ranges and of those that stay on their thread.
        """
        where = f"{self._where} AND message IS NOT NULL AND (end_thread IS NULL OR end_thread = thread)"
        known = self._report.sql(
            f"SELECT DISTINCT domain::VARCHAR AS domain, message::VARCHAR AS message FROM nvtx_ranges WHERE {where}"
        )
        names = []
        for row in known.to_pylist():
            part = self._named.get(row["message"]) or part_of(row["message"], row["domain"])
            names += [{**row, "domain": row["domain"] or "", "part": part}] if part in NAMED else []
        return self._report.sql(
            f"""SELECT r.thread, r."start", r."end", n.part FROM (SELECT * FROM nvtx_ranges WHERE {where}) r
                JOIN (SELECT unnest($domains) AS domain, unnest($messages) AS message, unnest($parts) AS part) n
                ON coalesce(r.domain, '') = n.domain AND r.message = n.message""",
            {f"{column}s": [row[column] for row in names] for column in ("domain", "message", "part")},
        )

    def _operations(self, *, backward: bool) -> pa.Table:
        return self._report.sql(
            f'SELECT thread, "start", "end" FROM ops WHERE {self._where} AND coalesce(backward, false) = {backward}'
        )

    def _waits(self) -> pa.Table:
        names = [
            name
            for name in self._report.sql("SELECT DISTINCT name::VARCHAR AS name FROM cuda_api")
            .column(0)
            .to_pylist()
            if waits(name)
        ]
        return self._report.sql(
            f'SELECT "start", "end" FROM cuda_api WHERE thread = {self._thread} AND {self._where} AND name IN (SELECT unnest($names))',
            {"names": names},
        )

    def _work(self) -> pa.Table:
        """What GPUs did in steps, or was launched in them: start, end, called (-1: not known), state."""
        begin, end = int(self._start[0]), int(self._end[-1])
        rows = self._report.sql(
            f"""SELECT o."start", o."end", coalesce(a."start", -1) AS called, o.operation
                FROM {operations()} o LEFT JOIN cuda_api a ON o.api = a.id
                WHERE o.process = {self._process} AND ({overlap(begin, end, "o.")} OR {overlap(begin, end, "a.")})"""
        )
        names = rows.column("operation").combine_chunks().dictionary_encode()
        kinds = classes(names.dictionary).to_pylist()
        states = [_state(name, kind) for name, kind in zip(names.dictionary.to_pylist(), kinds, strict=True)]
        return rows.append_column("state", pa.array(states, pa.int64()).take(names.indices))

    def _step(self, time: Int64Array) -> Int64Array:
        """The step around each time, -1 without one. Steps do not overlap."""
        step = np.searchsorted(self._start, time, side="right") - 1
        return np.asarray(np.where((step >= 0) & (time < self._end[step]), step, -1), np.int64)

    def _edges(self, *times: Int64Array) -> Int64Array:
        every = distinct(np.concatenate((self._start, self._end, *times)))
        return np.asarray(every[(every >= self._start[0]) & (every <= self._end[-1])], np.int64)


def _state(operation: str, kind: str) -> int:
    """The number of the state that an operation puts its GPU in."""
    if operation.startswith(("[CUDA memcpy", "[CUDA memset")):
        return STATES.index("memory")
    return STATES.index("communication" if kind == "communication" else "compute")
