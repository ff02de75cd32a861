"""Converting a spool of ranges: rate, memory, and the time of each stage, beside writing the table alone.

The spool is made with NumPy in the agent's format: eight threads, three levels of nesting, marks, 200 names, and a range
around everything on each thread. Each size is finished in a separate process, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _finishing import measure, write_alone
from harness import Row
from warplens.testing import spool_writer as sw

THREADS = 8
NAMES = 200
CHUNK = 1 << 20
EVENT = np.dtype(
    {
        "names": [str(name) for name, _, _ in sw.EVENT_FIELDS],
        "formats": [str(kind) for _, kind, _ in sw.EVENT_FIELDS],
        "offsets": [offset for _, _, offset in sw.EVENT_FIELDS],
        "itemsize": 40,
    }
)
BUDGET = 2e6  # complete ranges per second and core
BUDGET_RSS = 1 << 30


def run(quick: bool) -> list[Row]:
    """Measure 10^6 ranges, and 5*10^7 unless `quick`."""
    rows = []
    for size in (1_000_000,) if quick else (1_000_000, 50_000_000):
        with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
            make_spool(Path(folder) / "spool", size)
            output = subprocess.run(
                [sys.executable, __file__, folder], check=True, capture_output=True, text=True
            ).stdout
            found = json.loads(output.splitlines()[-1])
            floor = write_alone(Path(folder) / "report.warplens", "nvtx_ranges")
        label = f"finish {size:.0e} ranges".replace("e+0", "e")
        cpu = found["cpu"] / size * 1e9
        rows += [
            Row(
                f"{label}: per second and core",
                size / found["cpu"],
                "ranges/s",
                budget=BUDGET,
                budget_on="at least",
            ),
            Row(f"{label}: CPU per range", cpu, "ns", "pyarrow writes the same table", floor / size * 1e9),
            Row(f"{label}: decode", found["decode"] / size * 1e9, "ns/range"),
            Row(f"{label}: order and nest", found["order"] / size * 1e9, "ns/range"),
            Row(f"{label}: write", found["write"] / size * 1e9, "ns/range"),
            Row(f"{label}: wall", found["wall"], "s"),
            Row(
                f"{label}: peak memory",
                found["rss"] / 2**20,
                "MiB",
                budget=BUDGET_RSS / 2**20,
                budget_on="value",
            ),
            Row(f"{label}: Parquet", found["bytes"] / size, "B/range"),
        ]
    return rows


def make_spool(directory: Path, ranges: int) -> None:
    """Write a spool directory with this number of ranges; about 40 bytes each."""
    names = {number + 1: f"operation {number}" for number in range(NAMES)} | {
        NAMES + 1: "library",
        NAMES + 2: "io",
    }
    about = [sw.meta("thread", thread=thread, tid=100 + thread, start=1) for thread in range(THREADS)]
    about += [sw.meta("domain", NAMES + 1, domain=1), sw.meta("category", NAMES + 2, category=1, domain=0)]
    path = sw.write(directory, sw.spool([sw.strings(names), sw.records(sw.NO_THREAD, about)]))
    per_thread = ranges // THREADS
    rng = np.random.default_rng(1)
    with open(path, "r+b") as file:
        file.seek(0, 2)
        for first in range(0, per_thread, _PER_CHUNK):
            for thread in range(THREADS):
                _chunk(file, thread, first, min(_PER_CHUNK, per_thread - first), rng)
        end = file.tell()
        file.seek(56)
        file.write(np.array([end, end], "<u8").tobytes())


_PER_CHUNK = (CHUNK - 64) // EVENT.itemsize // 3 * 3


def _chunk(file: BinaryIO, thread: int, first: int, count: int, rng: np.random.Generator) -> None:
    """Triples in order of their ends: innermost, middle, outer."""
    number = np.arange(first, first + count)
    triple, level = number // 3, 2 - number % 3
    rows = np.zeros(count, EVENT)
    rows["type"] = 1
    rows["name"] = rng.integers(1, NAMES + 1, count)
    rows["domain"] = rows["name"] % 2
    rows["start"] = 1_000_000 + triple * 3_000 + level * 300 + thread * 7 + rng.integers(0, 100, count)
    rows["end"] = 1_000_000 + triple * 3_000 + 2_900 - level * 300 + thread * 7 - rng.integers(0, 100, count)
    rows["flags"] = np.where(number % 4 == 0, 2 | 8, 8)
    rows["payload"] = number
    rows["color"] = 0xFF76B900
    rows["category"] = number % 2
    file.write(sw.chunk(1, EVENT.itemsize, thread, rows.tobytes(), CHUNK))


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), ["nvtx_ranges"])))
