"""Columns for the process and GPU of a row. A table has them only where there is more than one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from warplens.report import Report


def places(
    report: Report, process: pa.ChunkedArray, device: pa.ChunkedArray | None = None
) -> dict[str, pa.Array]:
    """Return the columns `Host`, `Rank`, `PID` and `Device` for rows with these keys.

    Of each only where the rows differ in it.

    `Rank` is there where processes have one. A device is `name (number)`, the number being CUDA's in its process.
    """
    columns: dict[str, pa.Array] = {}
    if len(pc.unique(process)) > 1:
        hosts, ranks = of_process(report, process, "host"), of_process(report, process, "rank")
        columns |= {"Host": hosts} if len(pc.unique(hosts)) > 1 else {}
        columns |= {"Rank": ranks} if ranks.null_count < len(ranks) else {}
        columns["PID"] = of_process(report, process, "pid")
    devices = None if device is None else device_names(report, process, device)
    if devices is not None and len(pc.drop_null(pc.unique(devices))) > 1:
        columns["Device"] = devices
    return columns


def of_threads(report: Report, process: pa.ChunkedArray, thread: pa.ChunkedArray) -> dict[str, pa.Array]:
    """Return `Host`, `Rank` and `PID` as `places` does, then `TID` and `Thread`.

    The system id and the name.
    """
    known = report.table("threads", ["thread", "tid", "name"])
    ids, names = (_looked_up(thread, known.column("thread"), known.column(name)) for name in ("tid", "name"))
    return {**places(report, process), "TID": ids, "Thread": names}


def of_process(report: Report, process: pa.ChunkedArray | pa.Array, column: str) -> pa.Array:
    """Return a column of `processes` for rows with these keys.

    Null if there is no such process.
    """
    known = report.table("processes", ["process", column])
    return _looked_up(process, known.column("process"), known.column(column))


def device_names(report: Report, process: pa.ChunkedArray, device: pa.ChunkedArray) -> pa.Array:
    """Return `name (number)` for rows with these keys.

    `GPU (number)` where the name is not known, null without a number.
    """
    known = report.table("devices", ["process", "device", "name"])
    name = _looked_up(
        _keys(process, device), _keys(known.column("process"), known.column("device")), known.column("name")
    )
    return pc.binary_join_element_wise(
        pc.coalesce(name, pa.scalar("GPU")), pc.binary_join_element_wise("(", _text(device), ")", ""), " "
    )


def _keys(
    process: pa.ChunkedArray | pa.Array, device: pa.ChunkedArray | pa.Array
) -> pa.ChunkedArray | pa.Array:
    # Numbers of devices are small, keys of processes below 2^47.
    return pc.add(pc.multiply(process, pa.scalar(1 << 16, pa.int64())), pc.cast(device, pa.int64()))


def _looked_up(
    keys: pa.ChunkedArray | pa.Array, known: pa.ChunkedArray | pa.Array, values: pa.ChunkedArray | pa.Array
) -> pa.Array:
    # A null would find a null among the known keys, so none of those is left.
    position = pc.if_else(pc.is_null(keys), None, pc.index_in(keys, value_set=_flat(known)))
    return _flat(values).take(_flat(position))


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _text(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return _flat(pc.cast(column, pa.string()))
