"""NVTX ranges with their GPU work, each with its place among the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.projection import TABLES, projected
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.stats.launches import no_kernels
from warplens.stats.summary import range_names
from warplens.stats.traces import Nest

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_COLUMNS = ("id", "process", "thread", "start", "end", "domain", "message", "style", "parent")


def projections(report: Report, selection: Selection, *, stacks: bool = False) -> pa.Table:
    """Return the ranges with GPU work, in the order in which that began.

    Raises MissingData if there is none.

    Beside columns of `nvtx_ranges`: first, last, operations (see `ranges.projection.projected`), name (`domain:name`, a dictionary),
    level (how many of these ranges enclose it), number (how many of them are directly inside it), parent (null where that is none of
    them) and, with `stacks`, stack (ids from the outermost one to this one, each after a colon).
    """
    rows = projected(report, selection, _COLUMNS)
    if not rows.num_rows:
        raise missing(report, selection)
    ids = rows.column("id").combine_chunks()
    places = pc.fill_null(pc.index_in(rows.column("parent"), value_set=ids), -1)
    nest = Nest.of(np.asarray(places, np.int64), np.asarray(ids.to_numpy(), np.int64))
    inside = nest.above[nest.above >= 0]
    parent = pc.if_else(pa.array(nest.above >= 0), rows.column("parent").combine_chunks(), None)
    rows = rows.set_column(rows.column_names.index("parent"), "parent", parent)
    rows = rows.append_column("name", _names(rows))
    rows = rows.append_column("level", pa.array(nest.level))
    rows = rows.append_column("number", pa.array(np.bincount(inside, minlength=len(ids))))
    return rows.append_column("stack", nest.stacks(np.arange(len(ids)))) if stacks else rows


def _names(rows: pa.Table) -> pa.DictionaryArray:
    """Write `domain:name` of each row as a dictionary column with each text once.

    There are few texts in many rows.
    """
    domain, message = (rows.column(name).combine_chunks() for name in ("domain", "message"))
    width = len(message.dictionary) + 1
    codes = [np.asarray(pc.fill_null(column.indices, -1), np.int64) + 1 for column in (domain, message)]
    pairs = pa.array(codes[0] * width + codes[1]).dictionary_encode()
    first, second = np.divmod(np.asarray(pairs.dictionary), width)
    texts = (_texts(column, code) for column, code in ((domain, first), (message, second)))
    names = range_names(*texts).dictionary_encode()
    return pa.DictionaryArray.from_arrays(names.indices.take(pairs.indices), names.dictionary)


def _texts(column: pa.DictionaryArray, codes: Int64Array) -> pa.Array:
    return column.dictionary.take(pa.array(codes - 1, mask=codes == 0))


def missing(report: Report, selection: Selection, *, kernels: bool = False) -> MissingData:
    """Return what to raise where no range launched anything.

    `kernels`: where none launched a kernel.
    """
    needed = {
        "NVTX": ("nvtx_ranges",),
        "CUDA trace": ("cuda_api",),
        "CUDA kernel" if kernels else "CUDA GPU": TABLES[:1] if kernels else TABLES,
    }
    rows = report.tables
    lacking = [what for what, names in needed.items() if not any(rows[name] for name in names)]
    if lacking == ["CUDA kernel"]:
        return no_kernels(report, selection)
    if lacking:
        return MissingData(f"does not contain {' and '.join(lacking)} data.")
    what = "kernels that were" if kernels else "GPU work that was"
    return MissingData(f"does not contain {what} launched in NVTX ranges{selection.place(report)}.")
