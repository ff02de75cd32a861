"""For programs that use PyTorch: `profile` and `emit_nvtx` in place of PyTorch's own, and names of modules.

    import warplens.torch

    with warplens.torch.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)) as prof:
        for batch in loader:
            train(batch)
            prof.step()

`warplens profile python train.py` records operators, steps and phases without any of this.
"""

from __future__ import annotations

from warplens.torch.emitting import emit_nvtx
from warplens.torch.modules import name_modules
from warplens.torch.profiling import profile

__all__ = ["emit_nvtx", "name_modules", "profile"]
