"""The allocator's history in a memory snapshot of PyTorch, as columns: of one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warplens.arrays import Int64Array
from warplens.importers.profiles.stacks import FrameTree

Place = tuple[str, str, int]  # function, file, line
_TAKEN, _FREED = ("alloc",), ("free_completed",)
_GOT, _GAVE = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")


class AllocationStacks:
    """The stacks of allocations, as `frames`; each list of frames is read once."""

    def __init__(self, process: int) -> None:
        self.tree: FrameTree[Place] = FrameTree(process, _described)
        self._known: dict[tuple[int, ...], int] = {}
        self._places: dict[int, Place] = {}

    def number(self, frames: Sequence[dict[str, Any]]) -> int:
        """Return the key of the innermost frame, -1 without any. The snapshot owns the frames, so ids name them."""
        key = tuple(map(id, frames))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.tree.add([self._place(frame) for frame in reversed(frames)])
        return known

    def _place(self, frame: dict[str, Any]) -> Place:
        place = self._places.get(id(frame))
        if place is None:
            place = self._places[id(frame)] = (str(frame["name"]), str(frame["filename"]), int(frame["line"]))
        return place


@dataclass
class DeviceHistory:
    """What the allocator did on one device, in order of time.

    `time`: us since 1970. `taken`: bytes that tensors got, negative: gave back. `got`: bytes that the allocator got from CUDA.
    `allocated`, `reserved`: totals after it. `stack`: -1 where none is known. `failed`: out-of-memory errors, as time and bytes.
    """

    time: Int64Array
    address: np.ndarray[tuple[int], np.dtype[np.uint64]]
    taken: Int64Array
    got: Int64Array
    allocated: Int64Array
    reserved: Int64Array
    stack: Int64Array
    failed: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(
        cls, trace: list[dict[str, Any]], segments: list[dict[str, Any]], stacks: AllocationStacks
    ) -> DeviceHistory:
        """Read one device. `segments`: what the allocator had when the snapshot was taken."""
        trace = sorted(trace, key=_time)  # nearly always in order, which costs next to nothing
        action = [entry["action"] for entry in trace]
        size = np.array([entry["size"] for entry in trace], np.int64)
        taken = size * _sign(action, _TAKEN, _FREED)
        got = size * _sign(action, _GOT, _GAVE)
        known, total = _at_the_end(segments)
        return cls(
            time=np.array([entry["time_us"] for entry in trace], np.int64),
            address=np.array([entry.get("addr", 0) for entry in trace], np.uint64),
            taken=taken,
            got=got,
            # Totals are known at the end: each row's is that without what came behind it.
            allocated=known - int(taken.sum()) + np.cumsum(taken),
            reserved=total - int(got.sum()) + np.cumsum(got),
            stack=np.array(
                [
                    stacks.number(entry.get("frames", ())) if what in _TAKEN else -1
                    for what, entry in zip(action, trace, strict=True)
                ],
                np.int64,
            ),
            failed=[
                (entry["time_us"], entry["size"])
                for what, entry in zip(action, trace, strict=True)
                if what == "oom"
            ],
        )


def _time(entry: dict[str, Any]) -> int:
    return int(entry["time_us"])


def _sign(action: list[str], more: tuple[str, ...], less: tuple[str, ...]) -> Int64Array:
    signs = {**dict.fromkeys(more, 1), **dict.fromkeys(less, -1)}
    return np.array([signs.get(what, 0) for what in action], np.int64)


def _at_the_end(segments: list[dict[str, Any]]) -> tuple[int, int]:
    """Return what tensors had, and what the allocator had."""
    blocks = [block for segment in segments for block in segment["blocks"]]
    held = (
        int(block.get("requested_size", block["size"]))
        for block in blocks
        if str(block["state"]).startswith("active")
    )
    return sum(held), sum(int(segment["total_size"]) for segment in segments)


def _described(key: Place) -> dict[str, Any]:
    function, file, line = key
    python = file.endswith(".py") or file.startswith("<")
    return {
        "kind": "python" if python else "native",
        "function": function or "[no name]",
        "module": None if python else file.rpartition("/")[2] or None,
        "file": file or None,
        "line": line if line > 0 else None,
    }
