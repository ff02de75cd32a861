"""Compiles (FOLDER CAPABILITY) the kernels of benchmarks/_intrakernel_numba_kernels.py: <kernel>.ptx of each.

Timed (`timed`): runs benchmarks/intrakernel_numba.py itself in the simulator, smaller; prints its rows as JSON.
"""

# ruff: noqa: TID253
from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numba import cuda, types

from tests.support.optional_dependencies import ROOT
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl.numba import bind
from warplens.intrakernel.memory import allocate_memory

sys.path.insert(0, str(ROOT / "benchmarks"))

import _intrakernel_numba_kernels as kernels


def main(folder: Path, capability: int) -> None:
    """Compile each kernel, ours with and without regions."""
    from numba.cuda.typing.typeof import Purpose, typeof  # the simulator has none

    buffer = allocate(device="cpu", warps=4, tags=kernels.TAGS)
    on, off = (typeof(bind(buffer, enabled=enabled), Purpose.argument) for enabled in (True, False))
    cases: dict[str, tuple[Any, Any]] = {
        "loop": (kernels.loop, on),
        "off": (kernels.loop, off),
        "payload": (kernels.payload, on),
    }
    cases["reference"] = kernels.reference, types.int64
    for name, (kernel, last) in cases.items():
        ptx, _ = cuda.compile_ptx(kernel, (types.float32[::1], types.int32, last), cc=divmod(capability, 10))
        (folder / f"{name}.ptx").write_text(ptx)


def timed() -> list[Any]:
    """Run the benchmark on the host, where an event of the reference design is nothing: it is assembly."""
    import intrakernel_numba as benchmark
    from warplens import intrakernel

    kernels._begin = lambda slots: 0
    kernels._end = lambda slot: None
    made = intrakernel.allocate
    stands: dict[str, Any] = {
        "BLOCKS": 2,
        "WARPS": 1,
        "allocate_memory": lambda nbytes, *words: allocate_memory(nbytes, "cpu"),
    }
    for name, value in stands.items():
        setattr(benchmark, name, value)
    intrakernel.allocate = lambda *words, **named: made(*words, **{**named, "device": "cpu", "library": ""})
    return [{**asdict(row), "ok": row.ok} for row in benchmark.regions(3)]


if __name__ == "__main__":
    if sys.argv[1] == "timed":
        print(json.dumps(timed()))
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]))
