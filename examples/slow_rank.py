"""A training on several ranks, one of which takes longer for its data: the others wait for it.

Record it with the launcher of PyTorch, on one machine without a GPU, then ask who the others wait for:

    warplens profile -o slow torchrun --nproc-per-node 4 slow_rank.py
    warplens recipe straggler slow
"""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.utils.data
from torch import distributed

STEPS, SLOW, MORE_S = 20, int(os.environ.get("SLOW_RANK", "2")), 0.02


class Batches:
    """Random data. The slow rank reads it from a slow disk."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.005 + (MORE_S if self._rank == SLOW else 0))
        return torch.randn(64, 256)


def main() -> None:
    """Train, and say how long it took."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    layers = torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    begin = time.perf_counter()
    for batch in torch.utils.data.DataLoader(Batches(rank), batch_size=None):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    sys.stdout.write(f"rank {rank}: {STEPS} steps in {time.perf_counter() - begin:.2f} s\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
