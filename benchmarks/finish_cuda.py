"""Converting a spool of CUDA records: records per second and memory, beside writing the tables alone.

Half of the records are API calls (of four threads that take turns), the others kernels and copies that they launched; there is one
NVTX range for every ten calls, and 200 names of kernels. Each size is finished in a separate process, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _finishing import finish_sizes, measure
from harness import Row
from warplens.testing import spool_writer as sw
from warplens.testing.wide_records import WIDE

THREADS = 4
KERNELS = 200
CHUNK = 1 << 20
EVERY = 10_000  # ns from one call to the next
TABLE_NAMES = ("cuda_api", "kernels", "memcpys")


def run(quick: bool) -> list[Row]:
    """Measure 10^6 records, and 10^7 unless `quick`."""
    return finish_sizes("CUDA", Path(__file__), make_spool, TABLE_NAMES, quick=quick)


def make_spool(directory: Path, records: int) -> None:
    """Write a spool directory with this number of records of CUDA."""
    names = {1: "cudaLaunchKernel_v7000", 2: "cudaMemcpyAsync_v3020", 3: "step"}
    names |= {
        10 + number: f"_ZN2at6native18elementwise_kernelILi{number}EfEEvPT0_ii" for number in range(KERNELS)
    }
    about = [sw.meta("thread", thread=thread, tid=100 + thread, start=1) for thread in range(THREADS)]
    path = sw.write(directory, sw.spool([sw.strings(names), sw.records(sw.NO_THREAD, about)]))
    calls = records // 2
    rng = np.random.default_rng(1)
    with open(path, "r+b") as file:
        file.seek(0, 2)
        for first in range(0, calls, 10_000):
            number = np.arange(first, min(first + 10_000, calls))
            _calls(file, number)
            _work(file, number, rng)
            _ranges(file, number[::10])
        end = file.tell()
        file.seek(56)
        file.write(np.array([end, end], "<u8").tobytes())


def _rows(kind: str, count: int) -> npt.NDArray[Any]:
    layout = WIDE[kind]
    names, formats, offsets = zip(*layout["fields"], strict=True)
    rows = np.zeros(
        count, np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": layout["size"]})
    )
    rows["type"] = layout["id"]
    return rows


def _write(file: BinaryIO, rows: npt.NDArray[Any]) -> None:
    per_chunk = (CHUNK - 64) // rows.itemsize
    for first in range(0, len(rows), per_chunk):
        some = rows[first : first + per_chunk]
        file.write(
            sw.chunk(5, rows.itemsize, sw.NO_THREAD, some.tobytes(), CHUNK, record=int(rows["type"][0]))
        )


def _calls(file: BinaryIO, number: npt.NDArray[np.int64]) -> None:
    rows = _rows("cuda_api", len(number))
    rows["start"] = 1_000_000 + number * EVERY
    rows["end"] = rows["start"] + 4_000
    rows["tid"] = 100 + number % THREADS
    rows["correlation"] = 1 + number
    rows["name"] = 1 + (number % 5 == 0)
    # Threads have separate buffers: their calls come one thread after the other.
    _write(file, rows[np.argsort(rows["tid"], kind="stable")])


def _work(file: BinaryIO, number: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
    for kind, mine in (("cuda_kernel", number % 5 != 0), ("cuda_memcpy", number % 5 == 0)):
        some = number[mine]
        rows = _rows(kind, len(some))
        rows["start"] = 1_020_000 + some * EVERY + rng.integers(0, 5_000, len(some))
        rows["end"] = rows["start"] + rng.integers(1_000, 20_000, len(some))
        rows["context"], rows["stream"], rows["correlation"] = 1, 7 + some % 4, 1 + some
        if kind == "cuda_kernel":
            rows["name"] = rng.integers(10, 10 + KERNELS, len(some))
            rows["grid_x"], rows["grid_y"], rows["grid_z"], rows["block_x"] = some % 1000, 1, 1, 256
            rows["registers"], rows["shared_executed"] = 32, 1 << 14
        else:
            rows["bytes"], rows["copy_kind"], rows["source_kind"], rows["destination_kind"] = (
                some % 10_000,
                1,
                2,
                3,
            )
            rows["source_device"] = rows["destination_device"] = 0xFFFFFFFF
        _write(file, rows)


def _ranges(file: BinaryIO, number: npt.NDArray[np.int64]) -> None:
    for thread in range(THREADS):
        mine = number[number // 10 % THREADS == thread]
        items = [
            sw.event("range", 1_000_000 + at * EVERY - 100, 1_000_000 + (at + 9) * EVERY, 3)
            for at in mine.tolist()
        ]
        file.write(sw.chunk(1, 40, thread, b"".join(items)))


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), TABLE_NAMES)))
