"""What a region inside a Triton kernel costs on a GPU: ns beside the reference design and Proton, and how much attention slows.

Not yet run on a GPU: the kernels are compiled for GPUs, and attention runs in Triton's interpreter (tests/dsl/test_triton_benchmark.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from _intrakernel_gpu import BARE, FULL, REFERENCE, REGION, RING, SLOT_BYTES, per_pass, region_rows, slowdown, slowdown_row
from harness import Row
from warpline import intrakernel

NEEDS = "gpu"  # a piece of tests/pieces.py
BLOCKS, WARPS = 64, 4
WIDTH, ROWS, COLUMNS = 64, 128, 64


def lacks() -> str | None:
    """Say what this interpreter has not; None where all is there."""
    return next((f"the Python package {name} is not installed" for name in ("torch", "triton") if not find_spec(name)), None)


def run(quick: bool) -> list[Row]:
    """Measure the loops and attention."""
    return [*regions(2_000 if quick else 20_000), *attention(5 if quick else 25)]


def regions(count: int) -> list[Row]:
    """Ns that a region adds to a pass of a loop that does next to nothing, in all warps of 64 blocks."""
    import torch

    import _intrakernel_triton_kernels as kernels
    from warpline.intrakernel.dsl.triton import bind

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
        REFERENCE: lambda passes: kernels.reference[(BLOCKS,)](out.data_ptr(), passes, slots.data_ptr(), num_warps=WARPS),
    }
    found = per_pass(cases, torch.cuda.synchronize, count)
    return [*region_rows("Triton", found), beside_proton(found, out, count)]


def beside_proton(found: dict[str, float], out: Any, count: int) -> Row:
    """A region beside a scope of Proton: in this run, but for its own launches, which its session instruments."""
    import torch

    took, note = None, ""
    try:
        from _intrakernel_proton import recorded, scoped

        def launch(passes: int) -> None:
            scoped[(BLOCKS,)](out.data_ptr(), passes, num_warps=WARPS)

        took = recorded(lambda: per_pass({"scope": launch}, torch.cuda.synchronize, count)["scope"]) - found[BARE]
    except Exception as error:  # one of its versions, or of Triton's, that works otherwise
        note = f"Proton did not run: {type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"
    return Row(f"Triton: {REGION}", found[REGION] - found[BARE], "ns", "a scope of Proton", took, note=note)


def attention(rounds: int, heads: int = 64, length: int = 4096, device: str = "cuda") -> list[Row]:
    """How much slower attention is with eight regions for each tile of keys and values."""
    import torch
    import triton.language as tl

    import _intrakernel_triton_kernels as kernels
    from warpline.intrakernel.dsl.triton import bind

    grid = (length // ROWS, heads)
    buffer = intrakernel.allocate(grid, warps=WARPS, slots=8 * length // COLUMNS, tags=kernels.ATTENTION_TAGS, device=device)
    q, k, v, out = (torch.randn((heads, length, WIDTH), dtype=torch.float16, device=device) for _ in range(4))
    scale = math.log2(math.e) / math.sqrt(WIDTH)

    def launch(enabled: bool) -> None:
        prof = bind(buffer, enabled=enabled)
        kernels.attention[grid](q, k, v, out, length, scale, prof, tl.float16, WIDTH, ROWS, COLUMNS, num_warps=WARPS)

    launch(False)
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    wrong = (out - theirs).abs().max().item()
    if not wrong < 0.02:
        raise RuntimeError(f"attention is wrong by {wrong}: what it takes says nothing")
    found = slowdown(partial(launch, True), partial(launch, False), torch.cuda.synchronize, rounds=rounds)
    note = f"{heads} heads of {length} x {WIDTH}, fp16, {rounds} rounds of 5; {buffer.decode().events.size:,} regions a launch"
    return [slowdown_row("attention in Triton with 8 regions per tile", found, note)]
