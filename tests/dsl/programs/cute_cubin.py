"""Compiles the example kernel of CuTe DSL into a file that travels to a GPU without the package: python cute_cubin.py FOLDER.

Writes example.cubin and example.json: entry, grid, block and parameters (name and bytes), in their order. CUTE_DSL_ARCH says for what.
"""

import json
import re
import sys
from pathlib import Path

from warplens.intrakernel import allocate, dsl
from warplens.intrakernel.dsl.cute import bind
from warplens.intrakernel.examples import cute as example


def main(folder: Path) -> None:
    """Compile and write."""
    buffer = allocate(grid=dsl.EXAMPLE_GRID, warps=4, slots=32, tags=dsl.EXAMPLE_TAGS, device="cpu")
    compiled = example.compiled(bind(buffer), options="--keep-ptx --keep-cubin")
    (entry,) = re.findall(r"\.entry (\w+)\(", compiled.__ptx__)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "example.cubin").write_bytes(compiled.__cubin__)
    signature = {
        "entry": entry,
        "grid": dsl.EXAMPLE_GRID,
        "block": 128,
        "parameters": [["address", 8], ["count", 4], ["prof", 8]],
    }
    (folder / "example.json").write_text(json.dumps(signature))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
