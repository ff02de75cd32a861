"""The table `cuda_api`, with the innermost NVTX push/pop range around each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert import texts
from warplens.convert.cuda import names
from warplens.convert.cuda.place import CudaPlace
from warplens.convert.enclosing import Columns, Enclosing
from warplens.spool.wide import WideRecords
from warplens.storage import schema

_APIS = pa.array(["runtime", "driver"])


class Api:
    """The rows of one process; the ranges of NVTX go by while they are written."""

    def __init__(
        self,
        records: WideRecords,
        place: CudaPlace,
        backtraces: WideRecords | None,
        stacks: Callable[[npt.NDArray[Any]], pa.Array],
    ) -> None:
        """`backtraces` name stacks of some calls; `stacks` makes a column of their numbers."""
        self._records, self._place, self._stacks = records, place, stacks
        self._stack: Int64Array | None = None
        if backtraces is not None:
            row = place.calls.rows(place.calls.find(backtraces.column("correlation")))
            self._stack = np.zeros(int(place.calls.kept.sum()), np.int64)
            self._stack[row[row >= 0]] = backtraces.column("frames")[row >= 0]
        calls = place.calls
        self._start = place.clock(calls.start if calls.kept.all() else calls.start[calls.kept])
        self._around = Enclosing(calls.thread, self._start, place.thread_base)

    def pass_by(self, ranges: Columns) -> None:
        """Take the ranges of the current slice."""
        self._around.pass_by(ranges)

    def finish(self) -> Iterator[pa.Table]:
        """Return the rows, after the last slice."""
        self._around.finish()
        place, calls = self._place, self._place.calls
        functions = texts.Names(place.strings, names.call)
        span = calls.span if calls.kept.all() else calls.span[calls.kept]
        for rows in place.groups(len(calls.offsets)):
            fields = self._records.rows(calls.offsets[rows])
            (name,) = functions.columns(fields["name"])
            place.asked.add(rows, fields, place.spans, span[rows])
            columns = {
                **place.ids(rows),
                "thread": pa.array(place.thread_base + calls.thread[rows].astype(np.int64)),
                "start": pa.array(self._start[rows]),
                "end": pa.array(place.clock(fields["end"].astype(np.int64))),
                "api": pa.DictionaryArray.from_arrays(
                    pa.array(np.minimum(fields["domain"], 1).astype(np.int32)), _APIS
                ),
                "name": name,
                "result": pa.array(fields["result"].astype(np.int32)),
                "correlation": pa.array(fields["correlation"].astype(np.int64)),
                "range": self._around.column(rows),
            }
            if self._stack is not None:
                columns["stack"] = self._stacks(self._stack[rows])
            yield schema.build("cuda_api", columns)
