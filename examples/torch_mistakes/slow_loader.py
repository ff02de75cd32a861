"""Prepares each batch in the training process, sample by sample in Python: the GPU waits most of the time.

    warplens profile -o slow python examples/torch_mistakes/slow_loader.py
    warplens timeline slow.warplens

`--fix` prepares whole batches at once, in worker processes that are ahead of the training.
"""

from __future__ import annotations

import torch
from common import CLASSES, DEVICE, FEATURES, arguments, network, run, train_step
from torch import Tensor
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset[tuple[Tensor, Tensor]]):
    """Noise that is made, clipped and normalised one sample at a time."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        made = torch.Generator().manual_seed(number)
        raw = torch.randn(FEATURES, generator=made)
        scaled = torch.tensor([max(-2.0, min(2.0, value)) for value in raw.tolist()])
        return (scaled - scaled.mean()) / scaled.std(), torch.tensor(number % CLASSES)


class Batches(Dataset[tuple[Tensor, Tensor]]):
    """The same, a batch at a time."""

    def __init__(self, count: int, batch: int) -> None:
        self.count, self.batch = count, batch

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        made = torch.Generator().manual_seed(number)
        raw = torch.randn(self.batch, FEATURES, generator=made).clamp_(-2, 2)
        return (raw - raw.mean(1, keepdim=True)) / raw.std(1, keepdim=True), torch.arange(
            self.batch
        ) % CLASSES


def main() -> None:
    """Train."""
    options = arguments(__doc__, steps=30)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    on_gpu = DEVICE.type == "cuda"
    if options.fix:
        loader = DataLoader(
            Batches(options.steps + 1, options.batch), batch_size=None, num_workers=2, pin_memory=on_gpu
        )
    else:
        loader = DataLoader(Samples((options.steps + 1) * options.batch), batch_size=options.batch)
    moved = (
        (inputs.to(DEVICE, non_blocking=options.fix), classes.to(DEVICE, non_blocking=options.fix))
        for inputs, classes in loader
    )
    run(moved, lambda inputs, classes: train_step(model, optimizer, inputs, classes), options.steps)


if __name__ == "__main__":
    main()
