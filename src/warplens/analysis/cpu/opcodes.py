"""The instructions that the samples of each line were in, and how many of these were specialised."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warplens.model.words import percent

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.analysis.cpu.frames import FrameTable

PER = ("process", "thread", "opcode", "specialised")
_MOST = 4  # names in a line


@dataclass
class Instructions:
    """Time (ns) by instruction; `specialised` and `general`: that of those forms, of all."""

    names: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    specialised: int = 0
    general: int = 0

    def add(self, name: str, specialised: bool | None, weight: int) -> None:
        """Count time in one."""
        self.names[name] += weight
        self.specialised += weight if specialised else 0
        self.general += weight if specialised is False else 0

    def __str__(self) -> str:
        """The text beside a source line: the shares of the two forms, then the instructions with most time."""
        whole = sum(self.names.values())
        order = sorted(self.names.items(), key=lambda item: (-item[1], item[0]))
        shown = [f"{name} {percent(weight / whole)}" for name, weight in order[:_MOST]]
        more = f", {len(order) - _MOST} more" if len(order) > _MOST else ""
        return f"{percent(self.specialised / whole)} specialised, {percent(self.general / whole)} general: {', '.join(shown)}{more}"


def by_line(frames: FrameTable, rows: pa.Table) -> dict[tuple[str, int], Instructions]:
    """Return the instructions of each file and line in which samples ended.

    Nothing if none were recorded.

    `rows`: as `analysis.cpu.samples.sampled` returns them, by `PER` too.
    """
    lines: dict[tuple[str, int], Instructions] = defaultdict(Instructions)
    names, forms, weights = (rows.column(name).to_pylist() for name in ("opcode", "specialised", "weight"))
    for position, name, form, weight in zip(
        frames.positions(rows.column("stack")).tolist(), names, forms, weights, strict=True
    ):
        frame = frames.frame(position)
        if name is not None and weight and frame.file is not None and frame.line:
            lines[frame.file, frame.line].add(name, form, weight)
    return lines
