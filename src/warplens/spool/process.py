"""The facts about a traced process, from its spool or the launcher's notes.

Anything odd becomes a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_INT32 = (1 << 31) - 1


@dataclass(frozen=True)
class Process:
    """A traced process. `start_ns`: when the agent started in it; `fork_ns`: when it was forked, or 0.

    `outside`: the launcher recorded it, without an agent in it.
    """

    pid: int = 0
    ppid: int = 0
    host: str = ""
    boot_id: str = ""
    start_ticks: int = 0
    start_ns: int = 0
    fork_ns: int = 0
    executable: str = ""
    command: tuple[str, ...] = ()
    rank: int | None = None
    local_rank: int | None = None
    outside: bool = False


def read_process(facts: Any) -> Process:
    """Read the object `process` of a spool's JSON."""
    if not isinstance(facts, Mapping):
        return Process()
    return Process(
        pid=number(facts.get("pid"), _INT32) or 0,
        ppid=number(facts.get("ppid"), _INT32) or 0,
        host=text(facts.get("host")),
        boot_id=text(facts.get("boot_id")),
        start_ticks=number(facts.get("start_ticks")) or 0,
        start_ns=number(facts.get("start_ns")) or 0,
        fork_ns=number(facts.get("fork_ns")) or 0,
        executable=text(facts.get("executable")),
        command=words(facts.get("command")),
        rank=number(facts.get("rank"), _INT32),
        local_rank=number(facts.get("local_rank"), _INT32),
        outside=facts.get("outside") is True,
    )


def number(value: Any, most: int = 1 << 62) -> int | None:
    """Return a number from 0 to `most`, also where it is written as text.

    None for anything else.
    """
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None


def text(value: Any) -> str:
    """Return a string that UTF-8 can hold; empty for anything else."""
    return value.encode("utf-8", errors="replace").decode() if isinstance(value, str) else ""


def words(value: Any) -> tuple[str, ...]:
    """Return a list of strings as a tuple; empty for anything else."""
    return tuple(text(item) for item in value) if isinstance(value, list) else ()
