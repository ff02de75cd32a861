"""Looks at the loss in every step: the CPU waits until the GPU is done, then the GPU until the CPU has launched the next step.

    warplens profile -o slow python examples/torch_mistakes/sync_in_loop.py
    warplens stats -r cuda_api_sum slow.warplens

`--fix` adds the losses up on the GPU and looks at their sum every 50 steps.
"""

from __future__ import annotations

from itertools import cycle

import torch
from common import DEVICE, arguments, network, run, samples, train_step
from torch import Tensor

EVERY = 50


def main() -> None:
    """Train."""
    options = arguments(__doc__)
    model = network(width=512, depth=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, classes = (tensor.to(DEVICE) for tensor in samples(options.batch * 4))
    losses: list[float] = []
    total = torch.zeros((), device=DEVICE)
    steps = 0

    def watched(inputs: Tensor, classes: Tensor) -> None:
        losses.append(train_step(model, optimizer, inputs, classes).item())

    def seldom_watched(inputs: Tensor, classes: Tensor) -> None:
        nonlocal steps
        steps += 1
        total.add_(train_step(model, optimizer, inputs, classes))
        if steps % EVERY == 0:
            losses.append(total.item() / EVERY)
            total.zero_()

    batches = cycle(zip(inputs.split(options.batch), classes.split(options.batch), strict=True))
    run(batches, seldom_watched if options.fix else watched, options.steps)


if __name__ == "__main__":
    main()
