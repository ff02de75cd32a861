"""Decodes a spool made in a test into plain rows, without writing a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.convert.process_tables import ProcessTables
from warplens.spool.reader import SpoolFile
from warplens.testing import spool_writer as sw

Rows = list[dict[str, Any]]


def decode(
    path: Path, data: bytes, rows_per_slice: int = 1 << 20, clock: tuple[list[int], list[int]] | None = None
) -> tuple[Rows, Rows]:
    """Return the rows of nvtx_ranges and of nvtx_marks of one spool file; every table is checked by Arrow."""
    tables = decode_all(path, data, rows_per_slice, clock)
    return tables.get("nvtx_ranges", []), tables.get("nvtx_marks", [])


def decode_all(
    path: Path, data: bytes, rows_per_slice: int = 1 << 20, clock: tuple[list[int], list[int]] | None = None
) -> dict[str, Rows]:
    """Return the rows of every table that one spool file has rows for."""
    tables: dict[str, Rows] = {}

    def write(name: str, table: pa.Table) -> None:
        table.validate(full=True)
        tables.setdefault(name, []).extend(table.to_pylist())

    with SpoolFile(sw.write(path, data)) as spool:
        events = spool.events
        slices = events.plan(rows_per_slice)
        process = ProcessTables(spool, 0, write=write, clock=lambda time: time, clocks=lambda times: times)
        if clock:
            events.set_clock(np.array(clock[0], np.int64), np.array(clock[1], np.int64))
        for number in range(slices):
            process.add(events.slice(number))
        process.finish()
        process.notes()
        spool.notes()
    return tables
