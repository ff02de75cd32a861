"""Modules of a framework: the calls of their forward pass, and the operations that belong to each.

    forward   [Net                               ]     ranges of the domain `torch.nn`, called like the module's path
                [layer1      ]  [layer2        ]
                  [aten::addmm]   [aten::addmm]
    backward                                           [AddmmBackward0]  [AddmmBackward0]
                                                        of layer2         of layer1

An operation belongs to the innermost module around its begin. An operation of the backward pass belongs to the module of its forward
operation, and so do the operations inside of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.analysis.gpu.ops import during, operations
from warplens.analysis.ranges.nested import places
from warplens.analysis.step_functions import NOTHING, innermost
from warplens.analysis.steps.names import MODULES
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.report.columns import integers

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

_ENGINE = (
    "autograd::engine::evaluate_function"  # around each operation of the backward pass, with its own work
)


@dataclass(frozen=True)
class ModuleCalls:
    """Calls of modules, with the backward pass and the GPU work of each.

    `rows`: process, thread, start, end, path, kind (the class). `parent`: row of the call around each, NOTHING without one. `backward`:
    columns call (row of `rows`), start, end. `launches`: columns call, device, start, end, backward (whether it was launched there).
    """

    rows: pa.Table
    parent: Int64Array
    backward: pa.Table
    launches: pa.Table

    @classmethod
    def read(cls, report: Report, selection: Selection) -> ModuleCalls:
        """Read the calls that overlap the selection, with all of their backward pass; MissingData if there is none."""
        rows = report.sql(
            f"""SELECT process, thread, "start", "end", message::VARCHAR AS path, category::VARCHAR AS kind FROM nvtx_ranges
                WHERE domain = '{MODULES}' AND {during(report, selection)} ORDER BY thread, "start", "end" DESC, id"""
        )
        if not rows.num_rows:
            hint = "call `warplens.torch.name_modules(model)` in the program, or record it with `warplens.torch.profile(with_modules=True)`"
            raise MissingData(f"does not contain module data{selection.place(report)}; {hint}.")
        place = [integers(rows, name) for name in ("thread", "start", "end")]
        ops = _Ops.read(report, place)
        kept = ops.is_node & (ops.call != NOTHING)
        backward = {"call": ops.call[kept], "start": ops.start[kept], "end": ops.end[kept]}
        return cls(rows, native.nest(*place)[1], pa.table(backward), ops.launches(report))

    def around(self, call: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return pairs of a position in `call` and a call: the call there, and each one around it."""
        position, positions, calls = np.arange(len(call)), [], []
        while len(call):
            positions.append(position)
            calls.append(call)
            above = self.parent[call]
            position, call = position[above != NOTHING], above[above != NOTHING]
        empty = np.empty(0, np.int64)
        return np.concatenate([empty, *positions]), np.concatenate([empty, *calls])


@dataclass(frozen=True)
class _Ops:
    """Operations of the whole report.

    `call`: row of the module's call that each belongs to. `is_node`: the outermost operation of a function of the backward pass.
    `is_backward`: it is such a function, or inside of one.
    """

    process: Int64Array
    thread: Int64Array
    start: Int64Array
    end: Int64Array
    call: Int64Array
    is_node: np.ndarray[tuple[int], np.dtype[np.bool_]]
    is_backward: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @classmethod
    def read(cls, report: Report, calls: list[Int64Array]) -> _Ops:
        rows = report.sql(
            f"""SELECT process, thread, "start", "end", range, coalesce(forward, -1) AS forward,
                       starts_with(name::VARCHAR, '{_ENGINE}') AS engine
                FROM ops ORDER BY thread, "start", "end" DESC, range"""
        )
        process, thread, start, end, key, forward = (
            integers(rows, name) for name in ("process", "thread", "start", "end", "range", "forward")
        )
        parent = native.nest(thread, start, end)[1]
        call = innermost(calls[0], calls[1], calls[2], at_thread=thread, at_time=start)
        at = places(key, forward)
        engine = np.asarray(rows.column("engine").to_numpy(zero_copy_only=False), bool)
        # The engine adds work to it, in the function around it.
        node = np.flatnonzero(at != NOTHING)
        outer = np.where((parent[node] != NOTHING) & engine[parent[node]], parent[node], node)
        is_node = np.zeros(len(key), bool)
        is_node[outer] = True
        call[outer] = call[at[node]]
        inside = is_node.copy()
        # One pass per nesting level: what is inside of such a function belongs to its module.
        rest = np.flatnonzero(~inside & (parent != NOTHING))
        while len(ready := rest[inside[parent[rest]]]):
            call[ready] = call[parent[ready]]
            inside[ready] = True
            rest = rest[~inside[rest]]
        return cls(process, thread, start, end, call=call, is_node=is_node, is_backward=inside)

    def launches(self, report: Report) -> pa.Table:
        """Return the GPU work that operations of modules launched."""
        work = report.sql(
            f"""SELECT o."start", o."end", coalesce(o.device, -1) AS device, a.thread, a."start" AS called
                FROM {operations()} o JOIN cuda_api a ON o.api = a.id"""
        )
        thread, called = integers(work, "thread"), integers(work, "called")
        op = innermost(self.thread, self.start, self.end, at_thread=thread, at_time=called)
        kept = np.flatnonzero(op != NOTHING)
        kept = kept[self.call[op[kept]] != NOTHING]
        columns = {name: integers(work, name)[kept] for name in ("device", "start", "end")}
        return pa.table(
            {"call": self.call[op[kept]], "backward": pa.array(self.is_backward[op[kept]]), **columns}
        )
