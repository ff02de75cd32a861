"""Updates many small layers one tensor at a time: hundreds of kernels of a few us, each of which takes longer to launch than to run.

    warplens profile -o slow python examples/torch_mistakes/tiny_kernels.py
    warplens stats -r cuda_gpu_kern_sum,cuda_kern_exec_sum slow.warplens

`--fix` uses the fused optimizer and, on a GPU, replays the whole step as one CUDA graph.
"""

from __future__ import annotations

from itertools import cycle

import torch
from common import DEVICE, arguments, network, run, samples, train_step
from torch import Tensor, nn


def captured(
    model: nn.Module, optimizer: torch.optim.Optimizer, held: tuple[Tensor, Tensor]
) -> torch.cuda.CUDAGraph:
    """Capture a step on the batch `held`, which later batches are copied into."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # kernels must be loaded and buffers be there before they are captured
        for _ in range(3):
            train_step(model, optimizer, *held)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train_step(model, optimizer, *held)
    return graph


def main() -> None:
    """Train."""
    options = arguments(__doc__)
    on_gpu = DEVICE.type == "cuda"
    model = network(width=128, depth=48)
    how = {"fused": True, "capturable": True} if on_gpu else {"foreach": True}
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, **(how if options.fix else {"foreach": False}))
    inputs, classes = (tensor.to(DEVICE) for tensor in samples(options.batch * 4))
    batches = cycle(zip(inputs.split(options.batch), classes.split(options.batch), strict=True))
    if not (options.fix and on_gpu):
        run(batches, lambda inputs, classes: train_step(model, optimizer, inputs, classes), options.steps)
        return
    first_inputs, first_classes = next(batches)
    held = first_inputs.clone(), first_classes.clone()
    graph = captured(model, optimizer, held)

    def replayed(inputs: Tensor, classes: Tensor) -> None:
        held[0].copy_(inputs)
        held[1].copy_(classes)
        graph.replay()

    run(batches, replayed, options.steps)


if __name__ == "__main__":
    main()
