"""Names for people: GPUs, threads, tasks, contexts, streams and the directions of copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIDES = {"Host": "H", "Device": "D", "Peer": "P", "Array": "A"}
_ROW = 0xFFFFFFFF  # of an id: the rest is the process


def gpu_label(device: int | None, name: str | None) -> str:
    """Return `GPU 0: NVIDIA H100`.

    Only the number where the product's name is not known, only the name where the number is not.
    """
    number = "GPU" if device is None else f"GPU {device}"
    known = name if name not in (None, "", "GPU", number) else None
    return f"{number}: {known}" if known else number


def direction(kind: str | None) -> str:
    """Return the short name of a copy's kind: `HtoD` for `Host-to-Device`."""
    first, to, last = (kind or "").partition("-to-")
    return f"{_SIDES[first]}to{_SIDES[last]}" if to and {first, last} <= set(_SIDES) else kind or "Unknown"


def thread_label(row: Mapping[str, Any]) -> str:
    """Return what the thread of a row of `threads` is called: by its name, else by its id."""
    return str(row["name"] or f"thread {row['tid']}")


def task_label(row: Mapping[str, Any]) -> str:
    """Return what the task of a row of `tasks` is called: by its name, else by its library and number."""
    return str(row["name"] or f"{row['library']} {row['task'] & _ROW}")


def rank_label(row: Mapping[str, Any]) -> str:
    """Return what stands before the name of a process that has a rank: `rank 3: `."""
    return "" if row["rank"] is None else f"rank {row['rank']}: "


def context_label(context: int, row: Mapping[str, Any] | None) -> str:
    """Return what a context is called; `row`: of `contexts`, None if it is not there."""
    return _named("Context", context, (row or {}).get("name"))


def stream_label(stream: int, row: Mapping[str, Any] | None) -> str:
    """Return what a stream is called; `row`: of `streams`, None if it is not there."""
    return _named("Stream", stream, stream_name(row))


def stream_name(row: Mapping[str, Any] | None) -> str | None:
    """Return the name that a program gave to a stream, `default` for the one that needs none.

    None if it has none.
    """
    known = row or {}
    return known.get("name") or ("default" if known.get("kind") == "null" else None)


def _named(what: str, number: int, name: str | None) -> str:
    return f"{what} {number} ({name})" if name else f"{what} {number}"
