"""Classifies the names of NVTX ranges and of a framework's operations by the parts of a training step."""

from __future__ import annotations

import re
from functools import lru_cache

PARTS = ("data", "forward", "backward", "optimizer", "communication", "wait", "other")
"""The parts of a step; `wait`: for the GPU, in a call of CUDA."""

NAMED = PARTS[:5]
MODULES = "torch.nn"
"""The domain of modules' forward passes."""

_WORD = r"(?:^|[^a-z]){}(?:$|[^a-z])"
# The first that fits counts. Names that say two parts, such as `forward_backward`, are around both and say nothing.
_KNOWN = {
    "communication": re.compile(
        r"nccl|c10d::|gloo:|all[_ -]?reduce|all[_ -]?gather|all[_ -]?to[_ -]?all|reduce[_ -]?scatter|record_param_comms|"
        + _WORD.format("(?:communication|comm|barrier)"),
        re.IGNORECASE,
    ),
    "data": re.compile(
        r"data[_ ]?loader|(?:load|next|fetch|get|prepare)[_ ]?(?:data|batch|sample)|data[_ ]?(?:load|fetch|prep|wait|next)|"
        r"batch[_ ]to[_ ]device|" + r"^data$|collate",
        re.IGNORECASE,
    ),
    "optimizer": re.compile(
        r"optimizer|zero_grad|"
        + _WORD.format("(?:optim|opt_step|optimizer_step|optimiser|weight_update|param(?:eter)?_update)"),
        re.IGNORECASE,
    ),
    "backward": re.compile(r"autograd::engine|" + _WORD.format("(?:backward|bwd|backprop)"), re.IGNORECASE),
    "forward": re.compile(_WORD.format("(?:forward|fwd)"), re.IGNORECASE),
}
# Operations that only look like one.
_OPERATION = re.compile(r"(?:aten|prims|torch|triton|inductor)::")


@lru_cache(maxsize=1 << 16)
def part_of(message: str, domain: str | None = None) -> str | None:
    """Return the part that a range is in by its name; None where that says nothing."""
    if domain == "NCCL":
        return "communication"
    if domain == MODULES:  # a module may be called `comm`
        return None
    if _OPERATION.match(message):
        return None
    matching = [part for part, pattern in _KNOWN.items() if pattern.search(message)]
    if {"forward", "backward"} <= set(matching):
        return None
    return matching[0] if matching else None
