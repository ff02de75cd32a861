"""The languages that kernels are written in, one file each.

`warplens.catalog` finds them (family `intrakernel.dsl`).

Besides its entry `bind`, each file has what `python -m warplens.intrakernel.example` asks of it:

    def ways() -> dict[str, str | None]: …
        # Ways to run kernels, best first: `gpu`, then `interpreter`, `simulator` or `host`. None if the way is there, else
        # why it is not ("triton is not installed"). Imports nothing heavy: `importlib.util.find_spec`, `shutil.which`,
        # `warplens.intrakernel.driver.why_no_device()`.

    def example(way: str) -> Buffer: …
        # Runs the example kernel that way and returns its buffer, after one `with buffer.launch("example"):`. It may set
        # variables of the environment (TRITON_INTERPRET, NUMBA_ENABLE_CUDASIM) before it imports its package: it is called once,
        # in a separate process.

The example kernel is the same in all languages. Buffer: `allocate(grid=EXAMPLE_GRID, warps=…, slots=32, tags=EXAMPLE_TAGS)`; a
language without warps has one. Each unit does EXAMPLE_TILES tiles: region `tile` with `load`, `compute` and `store` one after
the other inside it, each with the number of its tile as payload; at its end the mark `done` without a payload. So a
unit has 4 * EXAMPLE_TILES + 1 records and drops none.
"""

from __future__ import annotations

EXAMPLE_GRID = 4
EXAMPLE_TILES = 4
EXAMPLE_TAGS = ("tile", "load", "compute", "store", "done")
