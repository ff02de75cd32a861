"""The label of a GPU in tables and pictures."""

from __future__ import annotations


def gpu_label(device: int | None, name: str | None) -> str:
    """Return `GPU 0: NVIDIA H100`; only the number where the product's name is not known, only the name where the number is not."""
    number = "GPU" if device is None else f"GPU {device}"
    known = name if name not in (None, "", "GPU", number) else None
    return f"{number}: {known}" if known else number
