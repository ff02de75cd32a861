"""The look-alike libnvidia-ml of tests/targets/cuda/nvml.c, and the environment that makes programs use it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "targets" / "cuda" / "nvml.c"


def fake_nvml(folder: Path, words: str = "", gpus: int = 2) -> dict[str, str]:
    """Build the library into `folder`, and return the variables for a program that is to load it."""
    library = folder / "libnvidia-ml.so.1"
    if not library.exists():
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", SOURCE, "-o", library], check=True
        )
    before = os.environ.get("LD_LIBRARY_PATH")
    return {
        "LD_LIBRARY_PATH": f"{folder}:{before}" if before else str(folder),
        "FAKE_NVML": words,
        "FAKE_NVML_GPUS": str(gpus),
    }
