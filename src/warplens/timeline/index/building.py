"""Builds the index of a part, finds it, and checks that it belongs to the present files."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.errors import WarplensError
from warplens.storage.available import budget
from warplens.storage.generations import FIRST, INDEX, INDEX_SUFFIX
from warplens.storage.manifest import Manifest, is_large
from warplens.timeline.index import inside
from warplens.timeline.index.builder import IndexBuilder
from warplens.timeline.index.inside import Insides
from warplens.timeline.index.layers import LAYERS, TABLES
from warplens.timeline.index.rows import InnermostFrames, LayerReader

_NS_PER_ROW = 100
_BYTES_PER_ROW = 1.6  # that an index takes until it is whole
_BYTES_PER_NAME = 600
_SHARE = 0.75  # of the budget: row groups take the rest
_FOOTER = 1 << 16  # bytes at the end of a Parquet file: they say what is in all of it

Progress = Callable[[str, float], None]


def path_of(report: Path, manifest: Manifest) -> Path:
    """Return where the index of a part lies in its report."""
    return report / INDEX / f"{stem(manifest)}{INDEX_SUFFIX}"


def stem(manifest: Manifest) -> str:
    """Return the name of a part's files: another one for each snapshot."""
    return Path(str(manifest.tables.get(FIRST, {}).get("file", ""))).stem or f"part-{manifest.part}"


def cached(cache: Path, report: Path, manifest: Manifest) -> Path:
    """Return where the index lies if the report cannot be written."""
    key = hashlib.sha256(
        f"{report.resolve()} {manifest.id} {stem(manifest)}".encode(errors="surrogateescape")
    ).hexdigest()
    return cache / f"{key[:24]}{INDEX_SUFFIX}"


def state(report: Path, manifest: Manifest) -> dict[str, Any]:
    """Return what says which files an index is of. Raises OSError."""
    files = {}
    for table in (*TABLES, "frames"):
        if manifest.rows(table):
            name = str(manifest.tables[table]["file"])
            with open(report / name, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - _FOOTER, 0))
                files[table] = [name, size, zlib.crc32(file.read())]
    return {"part": manifest.part, "id": manifest.id, "files": files}


def events(manifest: Manifest) -> int:
    """Return how many slices the index of a part has."""
    return sum(manifest.rows(layer.table) for layer in LAYERS)


def build(
    report: Path,
    manifest: Manifest,
    target: Path,
    progress: Progress | None = None,
    *,
    most_names: int | None = None,
) -> None:
    """Write the index of a part.

    Raises OSError, pyarrow's errors, MemoryError (for too many names, too); nothing is left of it
    then.
    """
    there = [layer for layer in LAYERS if manifest.rows(layer.table)]
    total, done = max(events(manifest), 1), 0
    insides = _insides(report, manifest)
    with IndexBuilder(
        target, {layer.name: layer.keys for layer in there}, state(report, manifest), most_names=most_names
    ) as builder:
        for layer in there:
            file = report / str(manifest.tables[layer.table]["file"])
            frames = None
            if layer.stacks and manifest.rows("frames"):
                frames = InnermostFrames(report / str(manifest.tables["frames"]["file"]))
            for rows in LayerReader(layer, file, frames, insides=insides):
                builder.add(layer.name, rows)
                done += rows.num_rows
                if progress is not None:
                    progress("index", min(done / total, 1.0))
        builder.commit()


def _insides(report: Path, manifest: Manifest) -> Insides | None:
    """Return the places of the warps of kernels that time themselves; None where there are none."""
    if not manifest.rows(inside.LAUNCHES):
        return None
    tables = {}
    for name, wanted in inside.NEEDED.items():
        if manifest.rows(name):
            tables[name] = pq.read_table(report / str(manifest.tables[name]["file"]), columns=list(wanted))
        else:
            tables[name] = pa.table({column: pa.array([], pa.int64()) for column in wanted})
    return Insides(tables[inside.LAUNCHES], tables[inside.UNITS])


def prepare(
    report: Path, manifest: Manifest, progress: Progress | None = None, *, limit_ns: float = float("inf")
) -> bool:
    """Make the index of a large part that was just written, if that takes no longer than `limit_ns`.

    False: there is none, and the first viewer of the part makes it.
    """
    room, rows = int(budget() * _SHARE), events(manifest)
    if not is_large(rows) or rows * _BYTES_PER_ROW > room or rows * _NS_PER_ROW > limit_ns:
        return False
    try:
        build(
            report, manifest, path_of(report, manifest), progress=progress, most_names=room // _BYTES_PER_NAME
        )
    except (OSError, pa.ArrowException, MemoryError, WarplensError, ValueError):
        return False  # the report is whole without it
    return True
