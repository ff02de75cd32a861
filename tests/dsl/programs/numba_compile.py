"""Compiles kernels of Numba-CUDA without a GPU: python numba_compile.py FOLDER CAPABILITY CASE….

Writes FOLDER/<number>.ptx and .cubin; each case is `module:kernel:options`; `options` are those of `allocate` and `bind`, as JSON.
"""

# ruff: noqa: TID253
from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

from cuda.core import Program, ProgramOptions  # type: ignore[import-not-found]
from numba import cuda, types
from numba.cuda.typing.typeof import Purpose, typeof

from warplens.intrakernel import allocate
from warplens.intrakernel.dsl import numba as ik

TAGS = ("load", "store", "inner", "outer", "even", "odd", "while", "first", "second")


def main(folder: Path, capability: str, cases: list[str]) -> None:
    """Compile each case."""
    for number, case in enumerate(cases):
        module, kernel, options = case.split(":", 2)
        wishes = json.loads(options)
        bound = {name: wishes.pop(name) for name in ("enabled", "generation") if name in wishes}
        prof = ik.bind(allocate(device="cpu", tags=TAGS, **wishes), **bound)
        kind = types.float32 if kernel.startswith("loop") else types.int32
        signature = (kind[::1], types.int32, typeof(prof, Purpose.argument))  # as a launch sees it
        ptx, _ = cuda.compile_ptx(
            getattr(importlib.import_module(f"tests.dsl.programs.{module}"), kernel),
            signature,
            cc=divmod(int(capability), 10),
        )
        # Names of kernels hold all that tells them apart; what tells two texts apart here is their code.
        (name,) = re.findall(r"\.entry (\w+)\(", ptx)
        ptx = re.sub(r"_ZN08NumbaEnv\w+", "environment", ptx.replace(name, "kernel"))
        (folder / f"{number}.ptx").write_text(ptx)
        arch = "sm_" + capability + ("a" if int(capability) >= 90 else "")
        (folder / f"{number}.cubin").write_bytes(
            Program(ptx, "ptx", ProgramOptions(arch=arch)).compile("cubin").code
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
