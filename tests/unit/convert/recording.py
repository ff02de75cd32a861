"""Spool directories as a launcher leaves them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplens.testing import spool_writer as sw

NAMES = sw.strings({1: "step", 2: "load", 3: "python"})


def recording(
    folder: Path,
    *,
    launch: Mapping[str, Any] | None = None,
    ranges: int = 3,
    clocks: str | None = None,
    children: int = 1,
) -> Path:
    """Write a spool directory: process 10 with `ranges` ranges and a mark, and children of it with one range each."""
    about = [sw.meta("thread", 3, thread=0, tid=10, start=1_000)]
    records = [sw.event("range", 1_000 + 100 * n, 1_050 + 100 * n, 1) for n in range(ranges)]
    data = sw.spool(
        [NAMES, sw.records(sw.NO_THREAD, about), sw.records(0, [*records, sw.event("mark", 1_001, None, 2)])],
        end_ns=5_000,
    )
    sw.write(folder, data)
    for number in range(children):
        pid = 11 + number
        facts = {"pid": pid, "ppid": 10, "start_ns": 2_000 + number, "rank": str(number), "local_rank": "0"}
        sw.write(
            folder, sw.spool([NAMES, sw.records(0, [sw.event("range", 2_100, 2_200, 2)])], facts), pid=pid
        )
    if launch is not None:
        full = {
            "command": ["x", "a b"],
            "host": "host",
            "boot_id": "boot",
            "pid": 10,
            "start_ns": 500,
            "end_ns": 6_000,
            "exit_status": 3,
            "sources": {"nvtx": {"on": True, "cost_ns": 20.5}},
            "diagnostics": [
                {"severity": "warning", "code": "told", "source": "launcher", "message": "so", "count": 2}
            ],
            "target": {
                "os": "Linux",
                "kernel": "6.1",
                "machine": "x86_64",
                "cpu": "c",
                "cpus": 2,
                "memory": 1 << 34,
            },
        }
        (folder / "launch.json").write_text(json.dumps({**full, **launch}))
    if clocks is not None:
        (folder / "clocks.jsonl").write_text(clocks)
    return folder
