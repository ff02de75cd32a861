"""NVTX ranges on the GPU as tracks of streams.

Computed once for a report, and kept in a separate index.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.projection import TABLES, on_streams
from warplens.disk.folder import Folder
from warplens.errors import ReportError
from warplens.storage.generations import INDEX, INDEX_SUFFIX
from warplens.timeline.index import IndexBuilder, LaneIndex, building

if TYPE_CHECKING:
    from warplens.report.report import Report

LAYER = "nvtx_gpu_projection"
_KEYS = ("process", "device", "context", "stream")
_COLUMNS = ("id", "message", "color")
_PREFIX = "projection-"
_LARGE = 300_000  # ranges and launches: what takes longer than somebody waits for a page


def has_projection(report: Report) -> bool:
    """Whether there may be ranges on the GPU."""
    counts = report.tables
    return bool(counts["nvtx_ranges"] and counts["cuda_api"] and any(counts[name] for name in TABLES))


def takes_long(report: Report) -> bool:
    """Whether it takes long to compute."""
    counts = report.tables
    return counts["nvtx_ranges"] + sum(counts[name] for name in TABLES) > _LARGE


def existing(report: Report, cache: Path | None) -> LaneIndex | None:
    """Return the index that was made of the report as it is; None where there is none."""
    wanted = _head(report)
    for path in _places(report, cache):
        if path.is_file():
            try:
                index = LaneIndex(path)
            except ReportError:
                continue
            if index.head.get("parts") == wanted["parts"]:
                return index
            index.close()
    return None


def made(report: Report, cache: Path | None) -> LaneIndex | None:
    """Compute and write the index; None where there is no room for it."""
    for path in _places(report, cache)[0 if report.stored.own else 1 :]:
        try:
            with IndexBuilder(path, {LAYER: _KEYS}, _head(report)) as builder:
                for stream, rows in on_streams(report, _COLUMNS):
                    builder.add(LAYER, _rows(stream, rows))
                builder.commit()
            with Folder(path.parent) as folder:
                for older in folder.names():  # of the report as it was, which nobody opens any more
                    if older != path.name and older.startswith(_PREFIX) and older.endswith(INDEX_SUFFIX):
                        folder.remove(older)
            return LaneIndex(path)
        except OSError:
            continue
    return None


def _rows(stream: tuple[int, int, int, int], rows: pa.Table) -> pa.Table:
    columns = {
        name: pa.array(np.full(rows.num_rows, value)) for name, value in zip(_KEYS, stream, strict=True)
    }
    columns |= {
        "start": rows.column("first"),
        "end": rows.column("last"),
        "id": rows.column("id"),
        "name": rows.column("message"),
    }
    return pa.table(
        {**columns, "color": pc.bit_wise_and(rows.column("color"), pa.scalar(0xFFFFFF, pa.uint32()))}
    )


def _head(report: Report) -> dict[str, Any]:
    stored = report.stored
    try:
        return {"parts": [[building.state(stored.path, part.manifest), part.shift] for part in stored.parts]}
    except OSError as error:
        raise ReportError(f"cannot read {error.filename}: {error.strerror}") from error


def _places(report: Report, cache: Path | None) -> list[Path]:
    """The possible places of the index: in the report, else in the cache."""
    names = " ".join(building.stem(part.manifest) for part in report.stored.parts)
    key = hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()[:16]
    whole = hashlib.sha256(f"{report.path.resolve()} {key}".encode(errors="surrogateescape")).hexdigest()[:24]
    own = report.path / INDEX / f"{_PREFIX}{key}{INDEX_SUFFIX}"
    return [own, *([] if cache is None else [cache / f"{whole}.projection{INDEX_SUFFIX}"])]
