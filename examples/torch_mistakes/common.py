"""What the programs of this folder share: a small network, one training step, and a loop that says how fast it is."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

import torch
from torch import Tensor, nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FEATURES, CLASSES = 1024, 16


def ranged(name: str) -> AbstractContextManager[object]:
    """Return an NVTX range around a block; nothing where PyTorch was built without CUDA."""
    return torch.cuda.nvtx.range(name) if torch.version.cuda else nullcontext()


def arguments(description: str | None, steps: int = 200) -> argparse.Namespace:
    """Read `--fix`, `--steps` and `--batch` from the command line."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--steps", type=int, default=steps, help=f"training steps (default: {steps})")
    parser.add_argument("--batch", type=int, default=512, help="samples of a batch (default: 512)")
    return parser.parse_args()


def network(width: int = 2048, depth: int = 4) -> nn.Sequential:
    """Return a network of `depth` hidden layers on the device."""
    torch.manual_seed(0)
    sizes = [FEATURES, *[width] * depth]
    layers: list[nn.Module] = []
    for inside, outside in pairwise(sizes):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], CLASSES)).to(DEVICE)


def samples(count: int) -> tuple[Tensor, Tensor]:
    """Return `count` samples and their classes, on the CPU."""
    made = torch.Generator().manual_seed(1)
    return torch.randn(count, FEATURES, generator=made), torch.randint(CLASSES, (count,), generator=made)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, classes: Tensor) -> Tensor:
    """Do one step; the loss stays on the device."""
    optimizer.zero_grad(set_to_none=True)
    with ranged("forward"):
        loss = nn.functional.cross_entropy(model(inputs), classes)
    with ranged("backward"):
        loss.backward()
    with ranged("optimizer"):
        optimizer.step()
    return loss.detach()


def run(
    batches: Iterator[tuple[Tensor, Tensor]], step: Callable[[Tensor, Tensor], object], steps: int
) -> None:
    """Do the steps, each in a range with `load` and `train` in it, and print how many a second there were."""
    for number in range(steps + 1):
        if number == 1:  # the first one also loads the kernels
            _settle()
            began = time.perf_counter()
        with ranged("step"):
            with ranged("load"):
                inputs, classes = next(batches)
            with ranged("train"):
                step(inputs, classes)
    _settle()
    print(f"{steps / (time.perf_counter() - began):,.1f} steps/s on {DEVICE}")


def _settle() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
