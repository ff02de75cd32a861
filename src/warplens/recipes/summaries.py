"""Keeps summaries of reports, so that a question that was asked before reads no report.

A summary is in the folder `summaries` of the user's own report, else in the user's cache. It belongs to
the content of the report, the recipe, its options and the version of warplens.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from warplens._version import __version__
from warplens.disk.folder import Folder
from warplens.errors import WarplensError
from warplens.flows import foreign
from warplens.handover import untrusted
from warplens.handover.naming import MANIFESTS, PENDING, SUMMARIES, is_report
from warplens.recipes import remote
from warplens.recipes.base import Place, Summary
from warplens.storage import manifest as manifests

_FORMAT = 1  # of the files
_FOOTER = 1 << 16  # bytes at the end of a Parquet file: they say what is in all of it
_MOST = 1 << 30  # bytes of a summary
_UNUSED_S = 30 * 86_400  # a summary in the cache that nobody read for so long goes
_SUFFIX = ".arrow"


@dataclass(frozen=True)
class _Content:
    """The content of a report or file, as a hash, and the folder for its summaries."""

    digest: str
    folder: Path


def kept(path: Place, recipe: str, options: Mapping[str, Any], *, compute: Callable[[], Summary]) -> Summary:
    """Return the summary of a report: the stored one if it is of the same content, else the computed one."""
    content = _content(path)
    if content is not None:
        summary = _read(content.folder / _name(content, recipe, options))
        if summary is not None:
            return summary
    summary = compute()
    content = content or _content(path)  # opening the report may have finished a recording
    if content is not None:
        _write(content, recipe, options, summary=summary)
    return summary


def _content(path: Place) -> _Content | None:
    """Return None for what has no content that could be compared, as a report that is recorded now.

    The name belongs to it: answers name reports.
    """
    digest = hashlib.sha256(f"{Path(path).name}\n".encode(errors="surrogateescape"))
    with suppress(OSError, WarplensError):
        if isinstance(path, str):
            return _Content(remote.content(path), foreign.cache().parent / SUMMARIES)
        if is_report(path):
            return _of_report(path, digest)
        if path.is_file():
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
            return _Content(digest.hexdigest(), foreign.cache().parent / SUMMARIES)
    return None


def _of_report(report: Path, digest: hashlib._Hash) -> _Content | None:
    """Hash the manifests, and size and footer of each table: a footer changes with the data."""
    with suppress(FileNotFoundError):
        if any((report / PENDING).iterdir()):
            return None
    own = True
    for path in sorted((report / MANIFESTS).glob("*.json")):
        manifest = manifests.read(path)
        own &= manifest.own
        digest.update(path.read_bytes())
        for table in sorted(manifest.tables):
            if manifest.rows(table):
                name = str(manifest.tables[table]["file"])
                digest.update(f"{name} {_end_of(report / name)}\n".encode(errors="surrogateescape"))
    inside = own and os.access(report, os.W_OK | os.X_OK)
    folder = report / SUMMARIES if inside else foreign.cache().parent / SUMMARIES
    return _Content(digest.hexdigest(), folder)


def _end_of(file: Path) -> tuple[int, int]:
    with untrusted.opened(file) as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(size - _FOOTER, 0))
        return size, zlib.crc32(opened.read())


def _name(content: _Content, recipe: str, options: Mapping[str, Any]) -> str:
    key = hashlib.sha256(
        json.dumps([_FORMAT, _version(), recipe, options, content.digest], sort_keys=True).encode()
    )
    return f"{_stem(recipe, options)}-{key.hexdigest()[:24]}{_SUFFIX}"


@cache
def _version() -> str:
    """Return the version of warplens; in a checkout also when its code changed last."""
    package = Path(__file__).parents[1]
    if not (package.parents[1] / "pyproject.toml").is_file():
        return __version__
    code = (file for pattern in ("**/*.py", "_lib/*.so") for file in package.glob(pattern))
    return f"{__version__} {max(file.stat().st_mtime_ns for file in code)}"


def _stem(recipe: str, options: Mapping[str, Any]) -> str:
    key = hashlib.sha256(json.dumps(options, sort_keys=True).encode())
    return f"{recipe}-{key.hexdigest()[:8]}"


def _read(path: Path) -> Summary | None:
    """Return the tables of a file; None if it does not exist or is broken."""
    try:
        data = untrusted.read(path, _MOST)
        head, _, body = data.partition(b"\n")
        facts = json.loads(head)
        if facts["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        stream = io.BytesIO(body)
        summary = {str(name): pa.ipc.open_stream(stream).read_all() for name in facts["tables"]}
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
        return None
    with suppress(OSError):
        os.utime(path)
    return summary


def _write(content: _Content, recipe: str, options: Mapping[str, Any], *, summary: Summary) -> None:
    """Store a summary in the place of an older one. A full disk costs nothing but the summary."""
    stream = io.BytesIO()
    for table in summary.values():
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
    body = stream.getvalue()
    head = json.dumps({"tables": list(summary), "sha256": hashlib.sha256(body).hexdigest()})
    name, stem = _name(content, recipe, options), _stem(recipe, options)
    in_report = is_report(content.folder.parent)
    with suppress(OSError), Folder(content.folder, create=True) as folder:
        folder.write(name, head.encode() + b"\n" + body)
        for other in folder.names():
            status = folder.status(other)
            if other == name or not other.endswith(_SUFFIX) or status is None:
                continue
            unused = time.time() - status.st_mtime > _UNUSED_S
            if other.startswith(f"{stem}-") if in_report else unused:
                folder.remove(other)
