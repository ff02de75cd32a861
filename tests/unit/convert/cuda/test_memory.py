"""Running totals of GPU memory, against a slow count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.unit.convert.cuda.spools import LIBRARY, api, report
from warplens.convert.cuda.memory import running

ALLOCATE, FREE, POOL = 1, 2, 3


def slow(operations: list[tuple[int, int, int, int, int]]) -> tuple[list[int], list[int]]:
    """The same, one operation after the other."""
    live: dict[int, tuple[int, tuple[int, int]]] = {}
    totals: dict[tuple[int, int], int] = {}
    sizes, after = [], []
    for operation, address, size, device, kind in operations:
        group = (device, kind)
        if operation in (ALLOCATE, FREE):
            had, of = live.pop(address, (0, group))
            totals[of] = totals.get(of, 0) - had
            size = size or had if operation == FREE else size
        if operation == ALLOCATE:
            live[address] = (size, group)
            totals[group] = totals.get(group, 0) + size
        sizes.append(size)
        after.append(totals.get(group, 0))
    return sizes, after


@pytest.mark.parametrize("seed", range(5))
def test_totals_as_a_slow_count_has_them(seed: int) -> None:
    chance = np.random.default_rng(seed)
    operations = [
        (
            int(chance.choice([ALLOCATE, FREE, POOL], p=[0.5, 0.45, 0.05])),
            *chance.integers([1, 0, 0, 2], [20, 50, 3, 4]).tolist(),
        )
        for _ in range(400)
    ]
    columns = np.array(operations, np.int64).T
    size, total = running(*columns)
    assert (size.tolist(), total.tolist()) == slow(operations)


def test_no_operation_gives_empty_totals() -> None:
    size, total = running(*np.empty((5, 0), np.int64))
    assert len(size) == len(total) == 0


def test_rows(tmp_path: Path) -> None:
    where = {"device": 0, "context": 1, "memory_kind": 3}
    rows = [
        {
            "operation": 1,
            "start": 1_000,
            "address": 1 << 63,
            "bytes": 100,
            "correlation": 1,
            "name": LIBRARY,
            **where,
        },
        {
            "operation": 1,
            "start": 1_100,
            "address": 4_096,
            "bytes": 50,
            "stream": 7,
            "pool": 9,
            "pool_size": 500,
            "pool_used": 50,
            **where,
        },
        {
            "operation": 1,
            "start": 1_200,
            "address": 8_192,
            "bytes": 7,
            "device": 0,
            "context": 1,
            "memory_kind": 2,
        },
        {"operation": 2, "start": 1_300, "address": 1 << 63, **where},
        {"operation": 2, "start": 1_400, "address": 77, "bytes": 1_000, **where},
        {"operation": 5, "start": 1_500, "device": 0xFFFFFFFF, "pool": 9, "pool_size": 60, "bytes": 10},
    ]
    found = report(tmp_path, {"cuda_api": [api(1, 990, 1_010)], "cuda_memory": rows})
    assert found.columns("gpu_memory", "operation", "kind", "bytes", "total") == [
        ("allocate", "Device", 100, 100),
        ("allocate", "Device", 50, 150),
        ("allocate", "Pinned", 7, 7),
        ("free", "Device", 100, 50),
        ("free", "Device", 1_000, 50),  # allocated before the recording
        ("pool trim", None, 10, None),
    ]
    assert found.columns(
        "gpu_memory", "device", "stream", "address", "pool", "pool_size", "pool_used", "name", "api"
    )[:2] == [
        (0, None, 1 << 63, None, None, None, "libx.so", 0),
        (0, 7, 4_096, 9, 500, 50, None, None),
    ]
    assert found["gpu_memory"][-1]["device"] is None
