"""A drawn training program, the same each time: what the tests of the timeline in the browser look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warplens.testing.timeline import timeline

TICK = 10_000  # ns of a column
STEPS = 6
# One step, 70 columns. `N` is its number: labels tie what belongs to one call.
_STEP = """
main           |[step                                                                ]
main           | [load            ][forward          ][backward            ][optimizer]
main@dali      |  [decode     ]
main           |                       !checkpoint
main:api       |  (cudaMemcpyAsync#cN)(cudaLaunchKernel#fN)(cudaLaunchKernel#bN)(cuCtxSynchronize )
main:python    |(main;train;load   )(main;train;forward )(main;train;backward )(main;train;opt   )
main:state     |(running:0 )(blocked:io    )(running:0       )(running:1        )(runnable    )
main:os        |    (read:/data/batch )
main:gil       |(hold     )(wait      )(hold             )
main:gc        |                             (2    )
loader         |{fetch                                  }
loader:state   |(blocked:poll                                     )(running:1    )
gpu0.7         |                      (gemm_fN#fN      )(gemm_bN#bN              )(adam )
gpu0.13        |      (HtoD#cN    )                                    (DtoH )
:sync          |                                                         (Context )
gpu0:memory    |  +4096#cN                    +8192                   -8192
gpu0~SM_Active |0    12        40        85                     70             10
main~loss      |4                       3                     2
"""


def picture(steps: int = STEPS) -> str:
    """Draw that many steps one after the other."""
    lines = [line.partition("|") for line in _STEP.strip().splitlines()]
    width = max(len(track) for _, _, track in lines)
    whole = []
    for head, _, track in lines:
        pieces = [track.replace("N", str(step)).ljust(width)[:width] for step in range(steps)]
        whole.append(f"{head}|{''.join(pieces)}")
    return "\n".join(whole)


def training(
    path: Path, *, steps: int = STEPS, slower: int = 1, rename: dict[str, str] | None = None, **options: Any
) -> Path:
    """Write the report; `slower` multiplies all times, `rename` replaces messages of ranges by any text. Returns its path."""
    extra = {old: {"message": new} for old, new in (rename or {}).items()}
    kernels = {
        f"gemm_{way[0]}{step}": f"gemm_{way}" for way in ("forward", "backward") for step in range(steps)
    }
    cuda = {label: dict.fromkeys(("name", "demangled", "mangled"), name) for label, name in kernels.items()}
    timeline(
        path,
        picture(steps),
        tick_ns=TICK * slower,
        ranks={"": 0},
        extra={"step": {"color": 0xFF76B900, "payload_int": 7}, **extra},
        cuda={"gpu0": {"name": "NVIDIA H100 80GB HBM3"}, **cuda},
        **options,
    )
    return path
