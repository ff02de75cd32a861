"""Operations of a framework and their launches.

The operation around each launch, and the time of each without its children.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.analysis.gpu.ops import Naming, during, operations
from warplens.analysis.ranges.nested import outermost
from warplens.analysis.step_functions import NOTHING, innermost
from warplens.arrays import Int64Array
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection


@dataclass(frozen=True)
class Operations:
    """Operations and launches of a selection.

    `rows`: operations, columns process, thread, start, end, name, shapes. `parent`: row of the operation around each, NOTHING without one.
    `launches`: columns process, device, start, end (on the GPU), kernel (text). `of`: row of the innermost operation around each launch.
    """

    rows: pa.Table
    parent: Int64Array
    launches: pa.Table
    of: Int64Array

    @classmethod
    def read(cls, report: Report, selection: Selection, naming: Naming = "demangled") -> Operations:
        """Read the operations that overlap the selection, with all that was launched in them.

        MissingData if there is none.
        """
        rows = report.sql(
            f"""SELECT process, thread, "start", "end", name::VARCHAR AS name, shapes::VARCHAR AS shapes FROM ops
                WHERE {during(report, selection)} ORDER BY thread, "start", "end" DESC, range"""
        )
        if not rows.num_rows:
            hint = "record with `-t torch`, import a trace of PyTorch's profiler, or take nvtx_kern_sum, which goes by NVTX ranges"
            raise MissingData(f"does not contain operator data{selection.place(report)}; {hint}.")
        thread, start, end = (
            np.ascontiguousarray(rows.column(name).to_numpy(), np.int64)
            for name in ("thread", "start", "end")
        )
        launches = report.sql(
            f"""SELECT o.process, o.device, o."start", o."end", o.operation AS kernel, a.thread, a."start" AS called
                FROM {operations(naming)} o JOIN cuda_api a ON o.api = a.id ORDER BY o.process, o."start", o.id"""
        )
        called = [np.asarray(launches.column(name).to_numpy(), np.int64) for name in ("thread", "called")]
        of = innermost(thread, start, end, at_thread=called[0], at_time=called[1])
        kept = np.flatnonzero(of != NOTHING)
        return cls(rows, native.nest(thread, start, end)[1], launches.take(pa.array(kept)), of[kept])

    def keys(self, shapes: bool) -> tuple[Int64Array, pa.Table]:
        """Number the kinds of operations: by process and name, with `shapes` by those too.

        Returns each row's number, and the kinds.
        """
        columns = ["process", "name", *(["shapes"] if shapes else [])]
        number = np.zeros(self.rows.num_rows, np.int64)
        for name in columns:
            codes = self.rows.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
            merged = pa.array(
                number * (len(codes.dictionary) + 1) + np.asarray(codes.indices, np.int64)
            ).dictionary_encode()
            number = np.asarray(merged.indices, np.int64)
        first = np.unique(number, return_index=True)[1]
        return number, self.rows.select(columns).take(pa.array(first))

    def own(self) -> Int64Array:
        """Return what each operation took on the host without the operations inside."""
        length = self.length()
        inside = self.parent >= 0
        own = length.copy()
        np.subtract.at(own, self.parent[inside], length[inside])
        return own

    def length(self) -> Int64Array:
        """Return what each operation took on the host."""
        start, end = (np.asarray(self.rows.column(name).to_numpy(), np.int64) for name in ("start", "end"))
        return end - start

    def outermost(self, key: Int64Array) -> Int64Array:
        """Return the rows of operations that are in no other one of their kind."""
        return np.flatnonzero(outermost(self.parent, key))

    def pairs(self, key: Int64Array, *, inclusive: bool) -> tuple[Int64Array, Int64Array]:
        """Return kinds and launches.

        Each launch with the kind of the innermost operation around it, or once with each kind
        around it.
        """
        launch = np.arange(len(self.of))
        if not inclusive:
            return key[self.of], launch
        keys, around = [], self.of
        width = len(launch) + 1
        # One pass per nesting level: every launch moves to the operation around its current one until it has none.
        while len(around):
            keys.append(key[around] * width + launch)
            above = self.parent[around] != NOTHING
            launch, around = launch[above], self.parent[around][above]
        # (kind, launch) in one number, so that np.unique counts a launch once per kind even where operations of a kind nest.
        kind, launch = np.divmod(np.unique(np.concatenate([np.empty(0, np.int64), *keys])), width)
        return np.asarray(kind, np.int64), np.asarray(launch, np.int64)
