"""The few pieces of Chrome's JSON that its exporter writes again and again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def microseconds(ns: int) -> str:
    """Write ns as microseconds with three decimals."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def arguments(column: pa.Array, write: Callable[[Any], str]) -> list[str]:
    """Write each value as an argument, empty if null; empty altogether where all are null."""
    if column.null_count == len(column):
        return []
    filled = pc.fill_null(column, pa.scalar(0).cast(column.type)) if column.null_count else column
    texts = list(map(write, filled.to_numpy(zero_copy_only=False).tolist()))
    if column.null_count:
        texts = [
            text if there else ""
            for text, there in zip(
                texts, column.is_valid().to_numpy(zero_copy_only=False).tolist(), strict=True
            )
        ]
    return texts


def sort_index(pid: int, tid: int, place: int) -> str:
    """Return the event that says where a thread is shown."""
    return json.dumps(
        {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": place}}
    )


def named(kind: str, pid: int, tid: int | None, name: str) -> str:
    """Return the event that names a process or thread."""
    return json.dumps(
        {"ph": "M", "name": kind, "pid": pid, **({} if tid is None else {"tid": tid}), "args": {"name": name}}
    )
