"""The presets: one word for several options of a recording.

Options on the command line take precedence over those of a preset.
"""

from __future__ import annotations

import shlex

from warplens.cli.options.argument import Argument

PRESETS = {
    "--light": ("-t cuda,nvtx -s none", "NVTX and CUDA only: for annotated programs."),
    "--cpu": (
        "-t cuda,nvtx,torch,gc,import -s process-tree",
        "Native and Python stacks and thread states of every process, 1000 samples per second.",
    ),
    "--python": (
        "-t nvtx,torch,gc,gil,import -s none --python-sampling true --python-sampling-frequency 1000",
        "Python stacks, asyncio tasks, garbage collections, the GIL, imports.",
    ),
    "--server": (
        "-t nvtx,osrt,gc -s none --python-sampling true --python-sampling-frequency 200 --osrt-threshold 100000 --keep-last 60",
        "A flight recorder: stacks, tasks and waits (sockets, locks, sleeps) of the last minute.",
    ),
    "--gpu": (
        "-t cuda,nvtx,torch,cublas,cudnn,nccl -s none --cuda-memory-usage",
        "CUDA, GPU memory, and the ranges of NVIDIA's libraries.",
    ),
    "--all": (
        "-t cuda,nvtx,torch,osrt,gc,gil,import,python-events,cublas,cudnn,nccl -s process-tree --cuda-memory-usage",
        "All of these, except calls of Python functions: for short runs.",
    ),
}
ARGUMENTS = tuple(
    Argument((name,), "", f"{text} Stands for: {words}") for name, (words, text) in PRESETS.items()
)


def words(name: str) -> list[str]:
    """Return the options that the preset `name` stands for."""
    return shlex.split(PRESETS[name][0])
