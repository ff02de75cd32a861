"""Compiles kernels of `triton_kernels.py` without a GPU: python triton_compile.py FOLDER CAPABILITY CASE….

Writes FOLDER/<number>.ptx and .cubin; each case is `module:kernel:options`; `options` are those of `allocate` and `bind`, as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import triton  # noqa: TID253
from triton.backends.compiler import GPUTarget  # noqa: TID253
from triton.compiler import ASTSource  # noqa: TID253

from warplens.intrakernel import allocate
from warplens.intrakernel.dsl import triton as ik

TAGS = ("load", "store", "inner", "outer", "even", "odd", "while", "first", "second")


def main(folder: Path, capability: str, cases: list[str]) -> None:
    """Compile each case."""
    for number, case in enumerate(cases):
        module, kernel, options = case.split(":", 2)
        wishes = json.loads(options)
        bound = {name: wishes.pop(name) for name in ("enabled", "generation") if name in wishes}
        prof = ik.bind(allocate(device="cpu", tags=TAGS, **wishes), **bound)
        source = ASTSource(
            fn=getattr(importlib.import_module(f"tests.dsl.programs.{module}"), kernel),
            signature={"out": "i64", "count": "i32", "prof": type(prof)("i64", "constexpr")},
            constexprs={(2, 1): prof.plan.value},
            attrs={(0,): [["tt.divisibility", 16]], (2, 0): [["tt.divisibility", 16]]},
        )
        compiled = triton.compile(
            source, target=GPUTarget("cuda", int(capability), 32), options={"num_warps": 4}
        )
        (folder / f"{number}.ptx").write_text(compiled.asm["ptx"])
        (folder / f"{number}.cubin").write_bytes(compiled.asm["cubin"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
