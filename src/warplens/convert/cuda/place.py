"""Shared by the CUDA tables of one process: its calls, beside the data of all tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.cuda.calls import Calls
from warplens.convert.cuda.captured import Captured
from warplens.convert.cuda.unanswered import Asked
from warplens.convert.place import Place

NOWHERE = 0xFFFFFFFF  # instead of a device, a stream, …


@dataclass
class CudaPlace(Place):
    """One process that used CUDA."""

    calls: Calls = field(kw_only=True)
    captured: Captured | None = field(kw_only=True)
    asked: Asked = field(kw_only=True)

    def api(self, call: Int64Array) -> pa.Array:
        """Return the ids of calls as a column; null for -1 and for calls that are no rows."""
        return self.calls.ids(call, self.first)
