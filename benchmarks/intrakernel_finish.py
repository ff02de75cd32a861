"""Converting recordings with in-kernel regions: CPU time per small launch, in parts and as a whole report.

Held against decoding the same buffers one after the other, which is what a loop over launches does at least.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from harness import Row
from warplens.convert.finish import finish
from warplens.spool.kernels.decoding import decode
from warplens.testing import spool_writer as sw
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

LAUNCHES = 5_000
WARPS = 8
REGIONS = 12
BUDGET = 0.2  # ms of CPU for a launch
_STEP = 100_000  # ns from launch to launch
_GPU = 7_000_000_000_000
_TEXTS = {1: "gemm", 2: "cudaLaunchKernel_v7000", 3: "_Z4gemmPf", 4: "0 load\n1 mma\n"}


def run(quick: bool) -> list[Row]:
    """Finish a recording; the best of three."""
    count = LAUNCHES // 10 if quick else LAUNCHES
    buffers = [_buffer(number) for number in range(1, count + 1)]
    cpu = min(_finish(buffers) for _ in range(3))
    one_by_one = min(_decode(buffers) for _ in range(3))
    what = f"finish {count:,} launches of {WARPS} warps with {REGIONS} regions: CPU"
    return [
        Row(what, 1e3 * cpu / count, "ms/launch", budget=BUDGET, budget_on="value"),
        Row(what, 1e3 * cpu / count, "ms/launch", "decoding them one by one", 1e3 * one_by_one / count),
    ]


def _buffer(number: int) -> bytes:
    first = _GPU + number * _STEP + 21_000
    regions = [
        BufferEvent(at % 2, first + 600 * at, first + 600 * at + 500, payload=at) for at in range(REGIONS)
    ]
    units = [BufferUnit(regions, cta=cta, sm=cta, begin=first, end=first + 8_000) for cta in range(WARPS)]
    return bytes(buffer_bytes(units, slots=REGIONS, generation=number))


def _finish(buffers: Sequence[bytes]) -> float:
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
        _spool(Path(folder) / "spool", buffers)
        begin = time.process_time()
        finish(Path(folder) / "spool", Path(folder) / "report.warplens")
        return time.process_time() - begin


def _decode(buffers: Sequence[bytes]) -> float:
    begin = time.process_time()
    for buffer in buffers:
        decode(buffer)
    return time.process_time() - begin


def _spool(directory: Path, buffers: Sequence[bytes]) -> None:
    """Write what the agent would have: a note and a reading of each launch, its call and its kernel."""
    strings = sw.strings(_TEXTS)
    at = sw.first_chunk() + len(strings)
    blobs = [sw.blob(buffer, 0) for buffer in buffers]
    _, places = sw.blobs(sw.NO_THREAD, blobs, at)
    chunk, offsets = sw.blobs(
        sw.NO_THREAD, [*blobs, *(sw.blob(struct.pack("<Q", place), 0) for place in places)], at
    )
    wide: dict[str, list[Mapping[str, int]]] = {
        kind: [] for kind in ("intrakernel_launch", "intrakernel_read", "cuda_api", "cuda_kernel")
    }
    for number, index in enumerate(offsets[len(blobs) :], 1):
        begin = number * _STEP
        told = {"launch": number, "tid": 10}
        wide["intrakernel_launch"].append(
            {**told, "start": begin, "name": 1, "buffer": 1, "generation": number}
        )
        found = {
            "units": WARPS,
            "blocks": WARPS,
            "room": WARPS,
            "slots": REGIONS,
            "first_ns": _GPU + begin + 21_000,
            "tags": 4,
            "blob": index,
        }
        last = {"last_ns": _GPU + begin + 29_000, "bytes": len(buffers[number - 1]), "domain": 1}
        wide["intrakernel_read"].append(
            {**told, "start": begin + 90_000, "end": begin + 90_010, **found, **last}
        )
        wide["cuda_api"].append(
            {"correlation": number, "start": begin + 12_000, "end": begin + 13_000, "tid": 10, "name": 2}
        )
        ran = {"start": begin + 20_000, "end": begin + 30_000, "context": 1, "stream": 7, "name": 3}
        wide["cuda_kernel"].append({"correlation": number, **ran, "grid_x": WARPS, "grid_y": 1, "grid_z": 1})
    sw.write(directory, sw.spool([strings, chunk, *(sw.wide(kind, rows) for kind, rows in wide.items())]))
