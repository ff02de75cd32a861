"""Writes pickles of the form of `torch.cuda.memory._dump_snapshot`, with our own generator."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FIRST_US = 1_790_000_000_000_000  # since 1970
TRAIN = {"name": "train", "filename": "/app/train.py", "line": 10}
FORWARD = {"name": "forward", "filename": "/app/model.py", "line": 5}
LOG = {"name": "log", "filename": "/app/train.py", "line": 30}


def entry(action: str, time: int, address: int, size: int, *frames: dict[str, Any]) -> dict[str, Any]:
    """One entry of a trace, `time` us behind the first; `frames` from the innermost one on."""
    row = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": FIRST_US + time}
    return {**row, "frames": list(frames)}


def segment(total: int, *blocks: tuple[str, int], device: int = 0) -> dict[str, Any]:
    """A segment, and the state and size of its blocks."""
    rows = [{"state": state, "size": size, "requested_size": size, "frames": []} for state, size in blocks]
    return {"device": device, "address": 0, "total_size": total, "blocks": rows}


def snapshot(
    trace: Sequence[dict[str, Any]],
    segments: Sequence[dict[str, Any]],
    annotations: Sequence[tuple[str, str, int]] = (),
) -> dict[str, Any]:
    """The whole: `annotations` are stage, name and time."""
    told = [
        {"stage": stage, "name": name, "device": 0, "time_us": FIRST_US + time}
        for stage, name, time in annotations
    ]
    return {"segments": list(segments), "device_traces": [list(trace), []], "external_annotations": told}


def write(path: Path, value: Any) -> Path:
    """Write a value as PyTorch does."""
    with open(path, "wb") as file:
        pickle.dump(value, file)
    return path
