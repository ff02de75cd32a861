"""Compiles the kernels of benchmarks/_intrakernel_numba_kernels.py: python numba_benchmark.py FOLDER CAPABILITY; <kernel>.ptx of each."""

# ruff: noqa: TID253
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from numba import cuda, types
from numba.cuda.typing.typeof import Purpose, typeof

from tests.pieces import ROOT
from warpline.intrakernel import allocate
from warpline.intrakernel.dsl.numba import bind

sys.path.insert(0, str(ROOT / "benchmarks"))

import _intrakernel_numba_kernels as kernels


def main(folder: Path, capability: int) -> None:
    """Compile each kernel, ours with and without regions."""
    buffer = allocate(device="cpu", warps=4, tags=kernels.TAGS)
    on, off = (typeof(bind(buffer, enabled=enabled), Purpose.argument) for enabled in (True, False))
    cases: dict[str, tuple[Any, Any]] = {"loop": (kernels.loop, on), "off": (kernels.loop, off), "payload": (kernels.payload, on)}
    cases["reference"] = kernels.reference, types.int64
    for name, (kernel, last) in cases.items():
        ptx, _ = cuda.compile_ptx(kernel, (types.float32[::1], types.int32, last), cc=divmod(capability, 10))
        (folder / f"{name}.ptx").write_text(ptx)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
