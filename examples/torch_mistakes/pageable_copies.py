"""Copies each batch from pageable memory: the copy blocks the program, and nothing runs on the GPU beside it.

    warplens profile -o slow python examples/torch_mistakes/pageable_copies.py
    warplens stats -r cuda_gpu_trace slow.warplens

`--fix` keeps the samples in pinned memory and copies the next batch on a stream of its own while this one is trained with.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from common import DEVICE, arguments, network, run, samples, train_step
from torch import Tensor


def blocking(inputs: Tensor, classes: Tensor, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Copy a batch when it is asked for, from memory that the driver has to copy once more itself."""
    while True:
        for first in range(0, len(inputs), batch):
            yield inputs[first : first + batch].to(DEVICE), classes[first : first + batch].to(DEVICE)


def ahead(inputs: Tensor, classes: Tensor, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Copy the batch after the one that is asked for, from pinned memory, beside the training."""
    if DEVICE.type != "cuda":
        yield from blocking(inputs, classes, batch)
    inputs, classes = inputs.pin_memory(), classes.pin_memory()
    copies, training = torch.cuda.Stream(), torch.cuda.current_stream()

    def copied(first: int) -> tuple[Tensor, Tensor]:
        with torch.cuda.stream(copies):
            return inputs[first : first + batch].to(DEVICE, non_blocking=True), classes[
                first : first + batch
            ].to(DEVICE, non_blocking=True)

    waiting = copied(0)
    while True:
        for first in (*range(batch, len(inputs), batch), 0):
            training.wait_stream(copies)
            ready, waiting = waiting, copied(first)
            for tensor in ready:
                tensor.record_stream(training)
            yield ready


def main() -> None:
    """Train."""
    options = arguments(__doc__)
    model = network(width=1024, depth=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = samples(options.batch * 8)
    batches = (ahead if options.fix else blocking)(*data, options.batch)
    run(batches, lambda inputs, classes: train_step(model, optimizer, inputs, classes), options.steps)


if __name__ == "__main__":
    main()
