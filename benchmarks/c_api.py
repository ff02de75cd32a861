"""Cost of NVTX calls in C while the agent records, beside two counter reads; and the maximum rate of events."""

from __future__ import annotations

import importlib.metadata
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from _spool import recording
from harness import Row

HERE = Path(__file__).parent
NAMES = {
    "push_pop": "nvtxRangePushA + nvtxRangePop",
    "push_pop_long": "nvtxRangePushA (64 characters) + nvtxRangePop",
    "push_pop_registered": "nvtxDomainRangePushEx (registered) + Pop",
    "push_pop_payload": "nvtxDomainRangePushEx (registered, payload of 8 doubles) + Pop",
    "mark": "nvtxMarkA",
    "mark_registered": "nvtxDomainMarkEx (registered)",
    "start_end": "nvtxRangeStartA + nvtxRangeEnd",
    "sample_int64": "nvtxCounterSampleInt64",
    "sample_float64": "nvtxCounterSampleFloat64",
    "is_enabled": "nvtxDomainIsEnabled",
    "timestamp": "nvtxTimestampGet",
}
BUDGETS = {"push_pop": 1.5}


def run(quick: bool) -> list[Row]:
    """Build the C program, run it in several rounds with the agent and without."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        program = _build("c_api.c", HERE, folder)
        storm = _build("nvtx_storm.c", HERE.parent / "tests" / "targets" / "nvtx", folder)
        attached, alone = [], []
        for number in range(3 if quick else 9):
            spool = folder / f"spool{number}"
            attached.append(_measure(program, recording(spool)))
            _empty(spool)
            alone.append(_measure(program, {}))
        rows = [_row(attached, key, "agent recording") for key in NAMES]
        rows += [_row(alone, key, "no tool") for key in NAMES]
        return rows + _throughput(storm, folder, 1_000_000 if quick else 10_000_000)


def _build(source: str, where: Path, folder: Path) -> Path:
    target = folder / Path(source).stem
    headers = [
        str(Path(str(f.locate())).parent.parent)
        for f in importlib.metadata.files("nvidia-nvtx") or []
        if f.name == "nvToolsExt.h"
    ]
    subprocess.run(
        ["gcc", "-O2", f"-I{headers[0]}", str(where / source), "-o", str(target), "-ldl", "-lpthread"],
        check=True,
    )
    return target


def _measure(program: Path, variables: dict[str, str]) -> dict[str, float]:
    environment = {
        name: value for name, value in os.environ.items() if name != "NVTX_INJECTION64_PATH"
    } | variables
    done = subprocess.run([program], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


# The best process, not the middle one: in a virtual machine whose host takes idle memory back, the first touch of a page
# can cost several microseconds, in whole processes at a time, in any program. The middle one is in the note.
def _row(rounds: list[dict[str, float]], key: str, mode: str) -> Row:
    return Row(
        what=f"{NAMES[key]}, {mode}",
        value=min(r[key] for r in rounds),
        unit="ns",
        peer="two counter reads",
        peer_value=min(r["two_reads"] for r in rounds),
        budget=BUDGETS.get(key) if mode == "agent recording" else None,
        note=f"best of {len(rounds)} processes; middle {statistics.median(r[key] for r in rounds):.1f} ns",
    )


def _throughput(storm: Path, folder: Path, ranges: int) -> list[Row]:
    spool = folder / "throughput"
    variables = recording(spool)
    threads = 2
    before = time.perf_counter()
    subprocess.run(
        [storm, str(threads), str(ranges // threads)],
        env=os.environ | variables,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - before
    size = sum(file.stat().st_size for file in spool.glob("*.spool"))
    zeros = folder / "zeros"
    before = time.perf_counter()
    with zeros.open("wb") as file:
        block = bytes(1 << 20)
        for _ in range(size >> 20):
            file.write(block)
    floor = time.perf_counter() - before
    _empty(spool)
    return [
        Row(
            what=f"fill a spool from {threads} threads, {ranges:,} ranges ({size / 1e6:,.0f} MB)",
            value=seconds,
            unit="s",
            peer="write() of as many zeros",
            peer_value=floor,
            note=f"{ranges / seconds / 1e6:.1f} M ranges/s",
        )
    ]


def _empty(spool: Path) -> None:
    for file in spool.iterdir():
        file.unlink()
