"""Tells the agent of this process, where there is one, about buffers and launches, so that their events are in the report."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from warpline.intrakernel.buffers import Buffer


def register(buffer: Buffer) -> int:
    """Tell the agent about a buffer; return its number there, 0 where nothing is recorded."""
    del buffer
    return 0


def launched(number: int, generation: int, name: str) -> None:
    """Tell the agent that the next kernel of this thread records into the buffer, with this generation."""


def unregister(number: int) -> None:
    """Tell the agent that the buffer is about to go: it stores what is in it."""
