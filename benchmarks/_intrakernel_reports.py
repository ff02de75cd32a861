"""Writes reports of kernels with in-kernel regions, through the real writer and with the real encodings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from _tables import texts, write
from warplens.storage.writer import Facts, PartWriter

SMS = 132
WARPS = 8  # 0 to 3 load, the others compute
REGIONS = 80  # of a warp: what it does and what it waits for, in turn
TAGS = ("load", "wait empty", "mma", "wait full")
_STEP = 500  # ns from region to region
_LIFE = REGIONS * _STEP


def make_intrakernel_report(path: Path, events: int, launches: int = 8) -> Path:
    """Write a report of about `events` regions in `launches` launches of one kernel: blocks of 8 warps, one per SM at a time."""
    ctas = max(events // (launches * WARPS * REGIONS), 1)
    units = ctas * WARPS
    length = (ctas // SMS + 1) * (_LIFE + 2_000)
    rng = np.random.default_rng(5)
    facts = Facts("bench-1-1", "bench", "boot", command=["bench"], origin=0, end=launches * (length + 10_000))
    who = {
        "pid": 1,
        "parent_pid": 0,
        "executable": "bench",
        "command": "bench",
        "primary": True,
        "exited": True,
    }
    with PartWriter(path, facts.id, facts.host) as part:
        part.write("processes", [{"host": "bench", "start": 0, "end": facts.end, "process": 0, **who}])
        part.write("threads", [{"thread": 0, "process": 0, "tid": 1, "name": "main", "start": 0}])
        zero = np.zeros(launches, np.int64)
        begins = np.arange(launches) * (length + 10_000)
        about = {
            "id": np.arange(launches),
            "process": zero,
            "thread": zero,
            "buffer": zero,
            "generation": np.arange(launches) + 1,
        }
        when = {
            "launched": begins,
            "start": begins,
            "end": begins + length,
            "units": zero + units,
            "events": zero + units * REGIONS,
        }
        none = dict.fromkeys(("dropped", "units_lost", "unended"), zero)
        names = {"name": texts(zero, ["gemm"]), "stored": pa.array(np.ones(launches, bool))}
        write(part, "intrakernel_launches", {**about, **when, **none, **names})
        for launch in range(launches):
            number = np.arange(units)
            cta, warp = number // WARPS, number % WARPS
            start = begins[launch] + cta // SMS * (_LIFE + 2_000)
            own = launch * units + number
            place = {
                "id": own,
                "process": 0 * own,
                "launch": 0 * own + launch,
                "cta": cta,
                "warp": warp,
                "sm": cta % SMS,
                "sm_end": cta % SMS,
            }
            ran = {"start": start, "end": start + _LIFE, "events": 0 * own + REGIONS, "dropped": 0 * own}
            write(part, "intrakernel_units", {**place, **ran, "ended": pa.array(np.ones(units, bool))})
            for first in range(0, units, 1600):
                some = np.arange(first, min(first + 1600, units))
                unit, region = np.repeat(some, REGIONS), np.tile(np.arange(REGIONS), len(some))
                begin = start[unit] + region * _STEP
                write(
                    part,
                    "intrakernel_events",
                    {
                        "id": launch * units * REGIONS + unit * REGIONS + region,
                        "process": 0 * unit,
                        "launch": 0 * unit + launch,
                        "unit": launch * units + unit,
                        "start": begin,
                        "end": begin + rng.integers(3, 15, len(unit)) * 32,
                        "tag": texts(region % 2 + 2 * (warp[unit] >= WARPS // 2), list(TAGS)),
                        "kind": texts(0 * unit, ["region"]),
                        "payload": region,
                    },
                )
        part.commit(facts)
    return path
