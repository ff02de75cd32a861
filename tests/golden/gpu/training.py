"""Three steps of a small training: `python training.py` in NVTX ranges, `python training.py profiler` counted by torch.profiler."""

from __future__ import annotations

import json
import sys
from collections import Counter

import torch  # noqa: TID253 - it is a program of PyTorch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
data, pinned = torch.randn(64, 256), torch.randn(64, 256).pin_memory()
graph, kept = torch.cuda.CUDAGraph(), torch.zeros(4096, device="cuda")
side = torch.cuda.Stream()


def step(number: int) -> None:
    """Copy, forward, backward, update, one replay of a graph, and a kernel in a stream of its own."""
    x = (data if number % 2 else pinned).to("cuda", non_blocking=True)
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    graph.replay()
    with torch.cuda.stream(side):
        kept.mul_(1.0)
    loss.item()


kept.add_(1)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    for _ in range(5):
        kept.add_(1)
step(0)
torch.cuda.synchronize()
if sys.argv[1:] == ["profiler"]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as window:
        for number in range(3):
            step(number)
        torch.cuda.synchronize()
    window.export_chrome_trace("trace.json")
    with open("trace.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = Counter((event["cat"], event["name"]) for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"))
    print(json.dumps([[*pair, count] for pair, count in sorted(names.items())], indent=0))
else:
    with torch.cuda.nvtx.range("training"):
        for number in range(3):
            with torch.cuda.nvtx.range(f"step {number}"):
                step(number)
        torch.cuda.synchronize()
