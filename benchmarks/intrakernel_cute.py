"""Cost of a region in a CuTe DSL kernel, in ns beside the reference design, in the same run.

Where the machine has no CuTe DSL, tools/cubins.py has compiled the kernels elsewhere.
Not yet run on a GPU: the kernels are compiled for GPUs (tests/dsl/test_cute_benchmark.py).
"""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from _intrakernel_gpu import BARE, FULL, REFERENCE, REGION, RING, SLOT_BYTES, per_pass, region_rows
from harness import Row
from intrakernel_cuda import Device
from tests.support.optional_dependencies import cubins, missing
from warplens import intrakernel
from warplens.intrakernel.device.cuda_kernels import GpuKernels
from warplens.intrakernel.driver import driver

NEEDS = "gpu"  # a piece of tests/support/optional_dependencies.py
BLOCKS, THREADS, RING_SLOTS = 64, 128, 64  # as _intrakernel_cute_kernels has them
KERNELS = Path(__file__).with_name("_intrakernel_cute_kernels.py")


def architecture() -> str:
    """The first device's, as CuTe DSL names it."""
    major, minor = driver().capability(0)
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def lacks() -> str | None:
    """Say what is not here; None where the kernels are, or can be made."""
    if not (reason := missing("cutlass-dsl")):
        return None
    folder = cubins(KERNELS.stem, architecture())
    return None if (folder / "cost.json").exists() else f"{reason}, and {folder} has no kernels of it"


def run(quick: bool) -> list[Row]:
    """Ns that a region adds to a pass of a loop that does next to nothing, in all warps of 64 blocks."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as made:
        folder = cubins(KERNELS.stem, architecture())
        if not (folder / "cost.json").exists():
            from tests.dsl.languages import run as run_program

            folder = Path(made)
            run_program("cutlass-dsl", KERNELS, folder, CUTE_DSL_ARCH=architecture())
        return measured(folder, 2_000 if quick else 20_000)


def measured(folder: Path, count: int) -> list[Row]:
    """Time the kernels of `folder`."""
    device, entries = Device(), json.loads((folder / "cost.json").read_text(encoding="utf-8"))
    out, slots = device.zeros(4 * BLOCKS * THREADS), device.zeros(SLOT_BYTES)
    # The kernels were compiled for ns.
    shape: dict[str, Any] = {
        "grid": BLOCKS,
        "warps": THREADS // 32,
        "library": "cuda",
        "clock": "globaltimer",
    }
    buffer = intrakernel.allocate(**shape, slots=2 * count)
    ring = intrakernel.allocate(**shape, slots=RING_SLOTS, mode="smem")
    into: dict[str, Any] = {BARE: buffer, REGION: buffer, FULL: buffer, RING: ring, REFERENCE: slots}
    loaded = {
        name: GpuKernels((folder / entries[name]["file"]).read_bytes(), buffer.pointer) for name in into
    }

    def launch(passes: int, name: str) -> None:
        words = (out, passes, into[name])
        if name in (BARE, REFERENCE):
            loaded[name].launch(entries[name]["entry"], BLOCKS, THREADS, *words)
        else:
            with into[name].launch("loop"):
                loaded[name].launch(entries[name]["entry"], BLOCKS, THREADS, *words)

    found = per_pass({name: partial(launch, name=name) for name in into}, lambda: device.words(out, 1), count)
    return region_rows("CuTe DSL", found)
