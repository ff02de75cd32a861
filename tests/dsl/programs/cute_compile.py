"""Compiles kernels of CuTe DSL without a GPU: python cute_compile.py FOLDER CASE…, each `module:kernel:options`.

Writes FOLDER/<number>.ptx and .cubin, or <number>.error with what the compiler said; `options` are those of `allocate` and `bind`, as
JSON. CUTE_DSL_ARCH says for which architecture.
"""

# ruff: noqa: ANN001, ANN202, TID253
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import cutlass.cute as cute
import cutlass.cute.runtime as runtime
from cutlass import Float32, Int32, Int64

from warplens.intrakernel import allocate
from warplens.intrakernel.dsl.cute import bind

TAGS = ("zero", "load", "store", "compute", "inner", "outer", "even", "odd", "while", "first", "second")


def host(kernel: Any) -> Any:
    """Make a function that launches `kernel`."""

    @cute.jit
    def launch(out: cute.Tensor, n: Int32, prof):  # type: ignore[no-untyped-def]
        kernel(out, n, prof).launch(grid=(4, 1, 1), block=(128, 1, 1))

    return launch


def compiled(module: str, name: str, options: dict[str, Any]) -> Any:
    """Compile one kernel, a function or the class Pipeline."""
    bound = {key: options.pop(key) for key in ("enabled", "generation") if key in options}
    prof = bind(
        allocate(device="cpu", **{"grid": 4, "warps": 4, "slots": 64, "tags": TAGS, **options}), **bound
    )
    kernels = importlib.import_module(f"tests.dsl.programs.{module}")
    if module == "cute_nuggets":  # these kernels take the buffer as a tensor
        prof = runtime.make_fake_compact_tensor(Int64, (1024,))
    function = kernels.Pipeline() if name == "pipeline" else host(getattr(kernels, name))
    return cute.compile(
        function,
        runtime.make_fake_compact_tensor(Float32, (4096,)),
        Int32(8),
        prof,
        options="--keep-ptx --keep-cubin",
    )


def main(folder: Path, cases: list[str]) -> None:
    """Compile each case."""
    for number, case in enumerate(cases):
        module, name, options = case.split(":", 2)
        try:
            kernel = compiled(module, name, json.loads(options))
        except Exception as error:
            (folder / f"{number}.error").write_text(f"{type(error).__name__}: {error}")
            continue
        (folder / f"{number}.ptx").write_text(kernel.__ptx__.rstrip("\0"))
        (folder / f"{number}.cubin").write_bytes(kernel.__cubin__)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
