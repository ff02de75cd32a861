"""Reports of several ranks, for the tests of recipes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from warplens.testing.timeline import timeline


def ranks(folder: Path, numbers: Iterable[int]) -> list[Path]:
    """Write a report for each rank; its kernel `gemm` takes 1,000 ns more than that of the rank below."""
    paths = []
    for rank in numbers:
        paths.append(folder / f"rank{rank}.warplens")
        timeline(
            paths[-1],
            f"main:api |(cudaLaunchKernel#1)\ngpu0.7   |                     (gemm#1{'-' * rank})",
            part=f"host-{rank}-1",
        )
    return paths
