"""Time per CUPTI record that the agent reads, checks, names and writes, beside a minimal loop."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

from harness import Row

HERE = Path(__file__).parent
NATIVE = HERE.parent / "native"
WHAT = {
    "calls": "an API call",
    "kernels": "a kernel (100 names of 110 characters)",
    "both": "calls and their kernels, a record",
}
BUDGET_NS = 100


def run(quick: bool) -> list[Row]:
    """Build the program from the agent's own sources, and run it in several rounds."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        program = _build(folder)
        rounds: list[dict[str, list[float]]] = []
        for _ in range(2 if quick else 7):
            done = subprocess.run(
                [program, folder], check=True, stdout=subprocess.PIPE, text=True, timeout=120
            )
            rounds.append(json.loads(done.stdout))
    return [
        Row(
            f"CUPTI record: {what}",
            min(one[key][0] for one in rounds),
            "ns",
            "walked and copied in memory",
            min(one[key][1] for one in rounds),
            BUDGET_NS,
            "value",
        )
        for key, what in WHAT.items()
    ]


def _build(folder: Path) -> Path:
    target = folder / "cuda_records"
    sources = [
        *sorted((NATIVE / "spool").rglob("*.cpp")),
        *sorted((NATIVE / "agent" / "sources" / "cuda").glob("*.cpp")),
    ]
    sources += [NATIVE / "agent" / "hooks" / "cupti" / "calls.cpp", HERE / "cuda_records.cpp"]
    includes = [f"-I{folder}" for folder in (NATIVE, NATIVE / "include", HERE.parent)]
    options = ["-std=c++20", "-O2", "-fno-rtti", "-ftls-model=initial-exec", "-fvisibility=hidden"]
    subprocess.run(
        ["g++", *options, *includes, *map(str, sources), "-o", str(target), "-ldl", "-lpthread"], check=True
    )
    return target
