"""Cost of a region in a Triton kernel, in ns beside the reference design and Proton; slowdown of attention.

All of it runs in Triton's interpreter as well (tests/dsl/test_triton_benchmark.py).
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _intrakernel_gpu import (
    BARE,
    FULL,
    REFERENCE,
    REGION,
    RING,
    SLOT_BYTES,
    one_by_one,
    per_pass,
    region_rows,
    slowdown,
    slowdown_row,
)
from harness import Row
from warplens import intrakernel

NEEDS = "gpu"  # a piece of tests/support/optional_dependencies.py
BLOCKS, WARPS = 64, 4
WIDTH, ROWS, COLUMNS = 64, 128, 64
PROTON = Path(__file__).with_name("_intrakernel_proton.py")


def lacks() -> str | None:
    """Say what this interpreter has not; None where all is there."""
    return next(
        (
            f"the Python package {name} is not installed"
            for name in ("torch", "triton")
            if not find_spec(name)
        ),
        None,
    )


def run(quick: bool) -> Iterator[Row]:
    """Measure the loops and attention."""
    return one_by_one(partial(regions, 2_000 if quick else 20_000), partial(attention, 5 if quick else 25))


def regions(count: int) -> list[Row]:
    """Ns that a region adds to a pass of a loop that does next to nothing, in all warps of 64 blocks."""
    import torch

    import _intrakernel_triton_kernels as kernels
    from warplens.intrakernel.dsl.triton import bind

    out = torch.zeros(BLOCKS * 128, device="cuda")
    slots = torch.zeros(SLOT_BYTES // 8, dtype=torch.int64, device="cuda")
    shape: dict[str, Any] = {"grid": BLOCKS, "warps": WARPS, "tags": kernels.LOOP_TAGS}
    buffer = intrakernel.allocate(**shape, slots=2 * count)
    ring = intrakernel.allocate(**shape, slots=64, mode="smem")

    def ours(passes: int, into: Any, payload: bool = False, **wishes: bool) -> None:
        with into.launch("loop"):
            kernels.loop[(BLOCKS,)](out.data_ptr(), passes, bind(into, **wishes), payload, num_warps=WARPS)

    cases: dict[str, Callable[[int], object]] = {
        BARE: partial(ours, into=buffer, enabled=False),
        REGION: partial(ours, into=buffer),
        FULL: partial(ours, into=buffer, payload=True, generation=True),
        RING: partial(ours, into=ring),
        REFERENCE: lambda passes: kernels.reference[(BLOCKS,)](
            out.data_ptr(), passes, slots.data_ptr(), num_warps=WARPS
        ),
    }
    found = per_pass(cases, torch.cuda.synchronize, count)
    return [*region_rows("Triton", found), beside_proton(found[REGION] - found[BARE], count)]


def beside_proton(ours: float, count: int) -> Row:
    """Compare a region, of `ours` ns, with a scope of Proton, measured in a separate process."""
    took, note = None, ""
    try:
        done = subprocess.run(
            [sys.executable, PROTON, str(count)], capture_output=True, text=True, timeout=90, check=False
        )
        last = (done.stdout if done.returncode == 0 else done.stderr).strip().rpartition("\n")[2]
        if done.returncode == 0:
            took = float(last)
        else:
            note = f"Proton did not run, exit status {done.returncode}: {last[:120]}"
    except (subprocess.TimeoutExpired, ValueError) as error:
        note = f"Proton did not run: {error}"
    return Row(f"Triton: {REGION}", ours, "ns", "a scope of Proton", took, note=note)


def attention(rounds: int, heads: int = 64, length: int = 4096, device: str = "cuda") -> list[Row]:
    """How much slower attention is with eight regions for each tile of keys and values."""
    import torch
    import triton.language as tl

    import _intrakernel_triton_kernels as kernels
    from warplens.intrakernel.dsl.triton import bind

    grid = (length // ROWS, heads)
    buffer = intrakernel.allocate(
        grid, warps=WARPS, slots=8 * length // COLUMNS, tags=kernels.ATTENTION_TAGS, device=device
    )
    q, k, v, out = (torch.randn((heads, length, WIDTH), dtype=torch.float16, device=device) for _ in range(4))
    scale = math.log2(math.e) / math.sqrt(WIDTH)

    def launch(enabled: bool) -> None:
        prof = bind(buffer, enabled=enabled)
        kernels.attention[grid](
            q, k, v, out, length, scale, prof, tl.float16, WIDTH, ROWS, COLUMNS, num_warps=WARPS
        )

    launch(False)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    wrong = (out - theirs).abs().max().item()
    if not wrong < 0.02:
        raise RuntimeError(f"attention is wrong by {wrong}: what it takes says nothing")
    found = slowdown(partial(launch, True), partial(launch, False), torch.cuda.synchronize, rounds=rounds)
    note = f"{heads} heads of {length} x {WIDTH}, fp16, {rounds} rounds of 5; {buffer.decode().events.size:,} regions a launch"
    return [slowdown_row("attention in Triton with 8 regions per tile", found, note)]
