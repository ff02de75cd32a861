"""Spools with CUDA in them, finished into reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from warplens.convert.finish import finish
from warplens.testing import spool_writer as sw

KERNEL = "_ZN2ns4gemmIfLi4EEEvPT_i"  # void ns::gemm<float, 4>(float*, int)
TEXTS = {
    1: "step",
    2: "cudaLaunchKernel_v7000",
    3: "cuLaunchKernel",
    4: KERNEL,
    5: "plain_kernel",
    6: "NVIDIA H200",
    7: "libx.so",
}
STEP, RUNTIME, DRIVER, GEMM, PLAIN, H200, LIBRARY = range(1, 8)
Rows = Sequence[Mapping[str, int]]


def api(correlation: int, start: int, end: int, tid: int = 10, **more: int) -> dict[str, int]:
    """A call of the runtime API."""
    return {"correlation": correlation, "start": start, "end": end, "tid": tid, "name": RUNTIME, **more}


def work(correlation: int, start: int, end: int, **more: int) -> dict[str, int]:
    """Work of a GPU."""
    return {"correlation": correlation, "start": start, "end": end, "context": 1, "stream": 7, **more}


def write(
    folder: Path, wide: Mapping[str, Rows], *others: bytes, texts: Mapping[int, str] = TEXTS, **spool: Any
) -> Path:
    """Write a spool directory: wide chunks by type, one for each, and other chunks before them."""
    chunks = [sw.strings(texts), *others, *(sw.wide(kind, rows) for kind, rows in wide.items())]
    sw.write(folder, sw.spool(chunks, **spool))
    return folder


class Finished:
    """The tables of a report as lists of rows."""

    def __init__(self, report: Path) -> None:
        self._report = report

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        (file,) = (self._report / "tables" / table).glob("*.parquet")
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
        return rows

    def columns(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        """Some columns of a table, row by row."""
        return [tuple(row[name] for name in names) for row in self[table]]

    def notes(self, code: str) -> list[dict[str, Any]]:
        """The diagnostics with a code."""
        return [row for row in self["diagnostics"] if row["code"] == code]


def report(
    tmp_path: Path, wide: Mapping[str, Rows], *others: bytes, control: bytes | None = None, **spool: Any
) -> Finished:
    """Write a spool and finish it."""
    folder = write(tmp_path / "spool", wide, *others, **spool)
    if control is not None:
        (folder / "control").write_bytes(control)
    finish(folder, tmp_path / "r.warplens")
    return Finished(tmp_path / "r.warplens")
