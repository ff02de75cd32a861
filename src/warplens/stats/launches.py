"""Launches with their times, and sizes of grid and block as nsys prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import Naming, during, kernels
from warplens.errors import MissingData
from warplens.model.words import counted

if TYPE_CHECKING:
    from warplens.report import Report, Selection

SIZES = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")


def launched(report: Report, selection: Selection, naming: Naming, nvtx: bool) -> str:
    """Return the SQL relation (in parentheses) of the selected kernels whose call was recorded.

    A launch lasts from the start of the call to the end of the kernel, or of the call where that is later. Columns: those of
    `kernels` and `analysis.gpu.ops.kernels`, and thread, call, call_start, call_end, total (ns, of the launch), queue (ns from the end
    of the call to the start of the kernel; null if the kernel began before).
    """
    return f"""(
    SELECT * FROM (
      SELECT k.* EXCLUDE ("start", "end"), k."start" AS kernel_start, k."end" AS kernel_end, a.thread, a.name AS call,
             a."start" AS call_start, a."end" AS call_end, a."start", greatest(a."end", k."end") AS "end",
             greatest(a."end", k."end") - a."start" AS total,
             CASE WHEN k."start" > a."end" THEN k."start" - a."end" END AS queue
      FROM {kernels(naming, nvtx)} k JOIN cuda_api a ON k.api = a.id
    ) WHERE {during(report, selection)})"""


def nothing_launched(report: Report, selection: Selection) -> MissingData:
    """Return what to raise where no kernel has its call."""
    if report.tables["kernels"] and not report.tables["cuda_api"]:
        return MissingData(
            "does not contain the API calls that its kernels were launched by; record with --trace=cuda."
        )
    return no_kernels(report, selection)


def without_call(report: Report, selection: Selection, launches: int) -> str:
    """Return a note about kernels whose call is not in the report; empty if there are none.

    `launches`: how many launches there are.
    """
    if selection.window(report) is None:
        number = report.tables["kernels"] - launches
    else:
        text = f"SELECT count(*) AS number FROM kernels k ANTI JOIN cuda_api a ON k.api = a.id WHERE {during(report, selection)}"
        number = report.sql(text).column(0)[0].as_py()
    return (
        f"{counted(number, 'kernel')} without an API call left out; it was before the recording, or lost."
        if number
        else ""
    )


def no_kernels(report: Report, selection: Selection) -> MissingData:
    """Return what to raise if there is not a kernel."""
    graphs = whole_graphs(report, selection)
    return MissingData(
        f"does not contain CUDA kernel data{selection.place(report)}{f': {graphs}' if graphs else '.'}"
    )


def whole_graphs(report: Report, selection: Selection) -> str:
    """Return a note about graphs that were recorded without their kernels.

    Empty if there are none.
    """
    if not report.tables["graphs"]:
        return ""
    number = (
        report.sql(f"SELECT count(*) AS number FROM graphs WHERE {during(report, selection)}")
        .column(0)[0]
        .as_py()
    )
    return (
        f"{counted(number, 'graph launch')} recorded as a whole; --cuda-graph-trace=node has their kernels."
        if number
        else ""
    )


def sizes(rows: pa.Table, what: str) -> pa.Array:
    """Return `x y z` of the `grid` or `block` of each row, right-aligned to four digits each."""
    axes = []
    for axis in "xyz":
        coded = rows.column(f"{what}_{axis}").combine_chunks().dictionary_encode()  # few sizes in many rows
        padded = pc.utf8_lpad(pc.cast(coded.dictionary, pa.string()), 4)
        axes.append(padded.take(coded.indices))
    return pc.binary_join_element_wise(*axes, " ")
