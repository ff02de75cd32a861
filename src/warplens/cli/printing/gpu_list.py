"""Lists the GPUs of a report as text: each once, with its model and its processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warplens.cli.printing.tables import printable
from warplens.cli.printing.words import counted
from warplens.timeline.names import gpu_label

_MOST = 32
_FEW = 4


def lines(devices: Sequence[Mapping[str, Any]], pids: Mapping[int, int]) -> Iterator[str]:
    """Yield a line for each GPU of the rows of `devices`; `pids`: process ids by key."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in devices:
        # without an id, GPUs of two processes cannot be matched
        key = (row["uuid"],) if row["uuid"] else (row["process"], row["device"])
        groups.setdefault(key, []).append(row)
    shown = sorted(groups.values(), key=lambda rows: (rows[0]["device"], rows[0]["uuid"] or ""))
    for rows in shown[:_MOST]:
        first = rows[0]
        _, _, known = gpu_label(first["device"], first["name"]).partition(": ")
        about = [*([printable(known)] if known else ["name not known"]), *_about(first)]
        users = sorted({pids.get(row["process"], 0) for row in rows})
        who = f"process {users[0]}" if len(users) == 1 else f"{counted(len(users), 'process')}"
        if 1 < len(users) <= _FEW:
            who = f"processes {', '.join(map(str, users))}"
        numbers = sorted({row["device"] for row in rows})
        yield f"GPU {'/'.join(map(str, numbers))}: {', '.join(about)}; {who}"
    if len(shown) > _MOST:
        yield f"… and {len(shown) - _MOST} more; -f json lists all"


def _about(row: Mapping[str, Any]) -> Iterator[str]:
    if row["compute_major"] is not None:
        yield f"compute capability {row['compute_major']}.{row['compute_minor'] or 0}"
    if row["multiprocessors"]:
        yield counted(row["multiprocessors"], "SM")
    if row["memory"]:
        yield f"{row['memory'] / (1 << 30):.0f} GiB"
    if row["bus"]:
        yield printable(row["bus"])
