"""Decodes a spool made in a test into plain rows, without writing a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from warpline.report.columns import slice_table
from warpline.report.domains import Domains
from warpline.spool.reader import SpoolFile
from warpline.testing import spool_writer as sw

Rows = list[dict[str, Any]]


def decode(path: Path, data: bytes, rows_per_slice: int = 1 << 20, clock: tuple[list[int], list[int]] | None = None) -> tuple[Rows, Rows]:
    """Return the rows of nvtx_ranges and of nvtx_marks of one spool file; every table is checked by Arrow."""
    tables: tuple[Rows, Rows] = ([], [])
    with SpoolFile(sw.write(path, data)) as spool:
        events = spool.events
        slices = events.plan(rows_per_slice)
        events.keys(0, 0, 0)
        events.set_strings(spool.strings)
        if clock:
            events.set_clock(np.array(clock[0], np.int64), np.array(clock[1], np.int64))
        for number in range(slices):
            counts = events.slice(number)
            for rows, name, into in zip(counts[:2], ("nvtx_ranges", "nvtx_marks"), tables, strict=True):
                table = slice_table(name, events, rows, spool.strings, Domains(spool.names, spool.strings))
                table.validate(full=True)
                into.extend(table.to_pylist())
        spool.notes()
    return tables
