"""Spools with CPU records in them, finished into reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.unit.convert.cuda.spools import Finished, Rows, write
from warplens.convert.finish import finish
from warplens.testing import spool_writer as sw

TEXTS = dict(
    enumerate(
        (
            "main",
            "load",
            "/app.py",
            "poll",
            "read",
            "/lib/libx.so.6",
            "abcd",
            "/data/a",
            "numpy",
            "ValueError",
            "open",
            "task",
            "sem_wait",
        ),
        1,
    )
)
MAIN, LOAD, APP, POLL, READ, LIBX, ABCD, DATA, NUMPY, VALUE_ERROR, OPEN, TASK, SEM_WAIT = TEXTS
NOWHERE = 0xFFFFFFFF
PYTHON, NATIVE = 1, 2
FRAMES = [
    {"node": 1, "domain": 2, "name": MAIN, "file": APP, "line": 7, "first_line": 5},
    {"node": 2, "parent": 1, "domain": 2, "name": LOAD, "file": APP, "line": 12, "first_line": 10},
    {"node": 3, "parent": 2, "domain": 1, "module": 1, "offset": 0x1234, "address": 0x7F0000001234},
]
MODULES = [
    {
        "module": 1,
        "name": LIBX,
        "build_id": ABCD,
        "time": 1,
        "begin": 0x7F0000000000,
        "end": 0x7F0000010000,
        "bias": 0x7F0000000000,
    }
]


def sample(start: int, end: int | None = None, tid: int = 10, **more: int) -> dict[str, int]:
    """A sample by the clock."""
    about = {"domain": PYTHON, "count": 1, "interval": 1_000, "cpu": NOWHERE, "stack": 2}
    return {**about, "start": start, "end": start if end is None else end, "tid": tid, **more}


def call(start: int, end: int, name: int = POLL, tid: int = 10, **more: int) -> dict[str, int]:
    """A call of the C library."""
    return {"start": start, "end": end, "name": name, "tid": tid, "fd": -1, **more}


def span(kind: int, start: int, end: int, name: int = MAIN, tid: int = 10, **more: int) -> dict[str, int]:
    """Something that Python did."""
    return {"domain": kind, "start": start, "end": end, "name": name, "tid": tid, **more}


def report(
    tmp_path: Path,
    wide: Mapping[str, Rows],
    *others: bytes,
    texts: Mapping[int, str] = TEXTS,
    control: bytes | None = None,
    **spool: Any,
) -> Finished:
    """Write a spool and finish it."""
    folder = write(tmp_path / "spool", wide, *others, texts=texts, **spool)
    if control is not None:
        (folder / "control").write_bytes(control)
    finish(folder, tmp_path / "r.warplens")
    return Finished(tmp_path / "r.warplens")


def thread(tid: int, index: int = 0, start: int = 900) -> bytes:
    """What says that a thread has an index."""
    return sw.records(sw.NO_THREAD, [sw.meta("thread", thread=index, tid=tid, start=start)])
