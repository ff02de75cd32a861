"""A PyTorch program for tools/gpu_probe.py; prints the CLOCK_MONOTONIC time of each phase on stderr.

usage: PYTHON tools/gpu_probe_program.py phases|short|profiler
"""

from __future__ import annotations

import sys
import time

import torch  # noqa: TID253 - it is a program of PyTorch


def phase(name: str) -> None:
    """Say that a phase begins."""
    print(f"{time.monotonic():.9f} PHASE {name}", file=sys.stderr, flush=True)


def five_launches(x: torch.Tensor) -> None:
    """In which order do records of a launch come?"""
    phase("five")
    for _ in range(5):
        x.add_(1)
    torch.cuda.synchronize()
    time.sleep(0.45)


def never_idle(x: torch.Tensor, y: torch.Tensor) -> None:
    """The queue of the GPU is never empty for 2 s, with few launches: does a flush deliver anything?"""
    phase("never-idle")
    side = torch.cuda.Stream()
    events: list[torch.cuda.Event] = []
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for _ in range(4):
            torch.mm(y, y)
        with torch.cuda.stream(side):
            x.add_(1)
        side.synchronize()
        events.append(torch.cuda.Event())
        events[-1].record()
        if len(events) > 8:
            events[-8].synchronize()
    torch.cuda.synchronize()
    time.sleep(0.45)


def tiny_launches(x: torch.Tensor) -> None:
    """As many launches as the program can make in 1 s."""
    phase("tiny")
    count, begin = 0, time.monotonic()
    while time.monotonic() < begin + 1:
        for _ in range(1000):
            x.add_(1)
        count += 1000
    torch.cuda.synchronize()
    phase(f"tiny-made={count} us={(time.monotonic() - begin) / count * 1e6:.3f}")


def graph(x: torch.Tensor) -> None:
    """A graph of 100 kernels, replayed 200 times."""
    phase("graph")
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(100):
            x.add_(1)
    for _ in range(200):
        captured.replay()
    torch.cuda.synchronize()


def profiler(x: torch.Tensor) -> None:
    """20 launches before, in and after a window of torch.profiler: who receives their records?"""
    for name in ("before", "within", "after"):
        phase(name)
        if name == "within":
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as window:
                for _ in range(20):
                    x.add_(1)
                torch.cuda.synchronize()
            kernels = [
                event for event in window.events() if event.device_type == torch.autograd.DeviceType.CUDA
            ]
            phase(f"torch.profiler-got={len(kernels)}")
        else:
            for _ in range(20):
                x.add_(1)
            torch.cuda.synchronize()
        time.sleep(0.45)


def main(which: str) -> None:
    """Run the phases, and exit while the GPU works."""
    phase("start")
    x, y = torch.zeros(32, device="cuda"), torch.randn(8192, 8192, device="cuda")
    torch.mm(y, y)
    torch.cuda.synchronize()
    if which == "profiler":
        profiler(x)
    else:
        five_launches(x)
    if which == "phases":
        never_idle(x, y)
        tiny_launches(x)
        graph(x)
    phase("exit")
    for _ in range(50):
        torch.mm(y, y)


if __name__ == "__main__":
    main(sys.argv[1])
