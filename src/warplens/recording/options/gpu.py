"""Options of GPU sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["none", "nvml", "gpm"]


@dataclass(frozen=True, slots=True)
class GpuMetrics:
    """`kind`: nothing, NVML's figures, or those and what GPM counts.

    `frequency` in Hz. `devices`: numbers of GPUs, none = all of them.

    `chosen`: the user asked for it, and hears where it does not work.
    """

    kind: Kind = "nvml"
    frequency: float = 10.0
    devices: tuple[int, ...] = ()
    chosen: bool = False
