"""Very many names: what their durations take."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from warplens.analysis.ranges.durations import Durations

pytestmark = pytest.mark.require("native")

GROUPS = 400_000
# Prints how many bytes a process has more for so many groups of one duration each, in each of two tables, and then in one.
MANY = f"""
import re
from pathlib import Path
import numpy as np
from warplens import native

def resident():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10

half = {GROUPS} // 2
start, end = np.zeros(half, np.int64), np.full(half, 7, np.int64)
codes, none = np.arange(half, dtype=np.int32), np.zeros(half, np.int32)
first, second = np.arange(half + 1, dtype=np.uint64), np.arange(half, 2 * half + 1, dtype=np.uint64)
one, shifts = np.ones(2, np.uint64), np.array([0, 4, 32], np.uint8)
before = resident()
tables = [native.make("durations_new") for _ in range(2)]
for table, texts in zip(tables, (first, second)):
    native.call("durations_add", table, start, end, none, none, codes, one, one, texts, shifts)
apart = resident() - before
native.call("durations_merge", *tables)
assert native.call("durations_groups", tables[0]) == {GROUPS}
print(apart, resident() - before)
"""


def test_a_group_of_one_takes_few_bytes() -> None:
    done = subprocess.run([sys.executable, "-c", MANY], check=True, stdout=subprocess.PIPE, text=True)
    for taken in map(int, done.stdout.split()):
        assert taken < 80 * GROUPS


def test_groups_of_any_size_are_counted_in_whatever_pieces_they_come() -> None:
    numbers = np.random.default_rng(1)
    sizes = [1, 2, 4, 5, 40, 3000]
    names = np.repeat([f"n{size}" for size in sizes], sizes)
    lengths = numbers.integers(0, 1 << 34, len(names))  # some are longer than 4.3 s
    with Durations() as durations:
        for some in np.array_split(numbers.permutation(len(names)), 7):
            whole = {
                "start": np.zeros(len(some), np.int64),
                "end": lengths[some],
                "message": names[some].tolist(),
            }
            durations.add(
                pa.table(
                    {**whole, "style": ["PushPop"] * len(some), "domain": pa.nulls(len(some), pa.string())}
                )
            )
        rows = {row["message"]: row for row in durations.result().to_pylist()}
    for size in sizes:
        mine = lengths[names == f"n{size}"]
        row = rows[f"n{size}"]
        assert (row["count"], row["total"], row["min"], row["max"]) == (
            size,
            mine.sum(),
            mine.min(),
            mine.max(),
        )
        assert row["median"] == np.median(mine)
