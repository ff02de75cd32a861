"""Launches a kernel up to the point where a GPU is needed; prints how many kernels were compiled so far, and timers in each."""

# ruff: noqa: TID253
from __future__ import annotations

import json
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from tests.dsl.programs import triton_kernels as kernels
from warplens.intrakernel import allocate
from warplens.intrakernel.dsl import triton as ik


class Driver:
    """Says what compiling asks of a driver."""

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def main() -> None:
    driver.set_active(Driver())
    small = allocate(device="cpu", tags=["load", "store"])
    large = allocate(device="cpu", tags=["load", "store"], slots=512, grid=8)
    other = allocate(device="cpu", tags=["store", "load"])
    ways: list[tuple[Any, dict[str, Any]]] = [
        (small, {}),
        (large, {}),
        (other, {}),
        (small, {"enabled": False}),
        (other, {"enabled": False}),
        (small, {"generation": True}),
    ]
    seen = []
    for buffer, options in ways:
        compiled = kernels.loop.warmup(1 << 40, 5, ik.bind(buffer, **options), grid=(1,))
        seen.append([len(kernels.loop.device_caches[0][0]), compiled.asm["ptx"].count("%globaltimer_lo")])
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
