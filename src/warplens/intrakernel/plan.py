"""The recording plan of one kernel.

The facts of the buffer and the options that a front end compiles into the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from warplens.errors import UsageError
from warplens.intrakernel.layout import Shape
from warplens.intrakernel.tags import TagTable
from warplens.model import intrakernel_layout as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warplens.intrakernel.buffers import Buffer

WANTED_AT = 136  # in the head: generation << 32 and the highest number of a unit that found no slice, plus 1
_SPREAD = 1 << 24  # durations of a ring are 24 bits wide, and its tags 8


@dataclass(frozen=True)
class Plan:
    """Constants of one compiled kernel: hashable, with a complete `repr`.

    Compilers keep kernels by that.

    Numbers of units and slots are not among them (but for rings): kernels read these from the buffer's header, so a larger
    buffer needs no new kernel.

    Attributes:
        enabled: False emits nothing at all.
        mode, clock, warps, warp_mask, sample_blocks: as in `Shape`.
        generation: put the launch's number into every record, so that a record of an older launch shows its age.
        ring_slots: length of each ring in mode `smem`, else 0.
        tags: names, in the order of their numbers.
        revision: of what we emit, for compilers that keep kernels: another one is another kernel.
    """

    enabled: bool = True
    mode: str = "slices"
    clock: str = "globaltimer"
    warps: int = 1
    warp_mask: int = 0
    sample_blocks: int = 1
    generation: bool = False
    ring_slots: int = 0
    tags: tuple[str, ...] = ()
    revision: int = 0

    def tag(self, tag: str | int) -> int:
        """Return the number of a tag.

        UsageError if the table has no such name, or where the number does not fit.
        """
        if not isinstance(tag, int | str):
            raise UsageError(
                "a tag must be a name or a number that is known when the kernel is compiled, not "
                f"{tag!r}; stop(p, token, tag)"
            )
        try:
            number = TagTable(self.tags).id(tag)
        except KeyError as error:
            raise UsageError(str(error.args[0])) from None
        if self.mode == "smem" and number >= layout.RING_TAGS:
            raise UsageError(
                f"tag {tag!r} has the number {number}; a ring in shared memory has room for {layout.RING_TAGS} tags"
            )
        return number

    def word(
        self, tag: str | int, *, mark: bool = False, crossing: bool = False, payload: bool = False
    ) -> int:
        """Return a record's third word, without the generation."""
        flags = (layout.MARK if mark else 0) | (layout.ASYNC if crossing else 0)
        flags |= (layout.HAS_GENERATION if self.generation else 0) | (layout.HAS_PAYLOAD if payload else 0)
        return self.tag(tag) | flags << 16

    def ring_word(
        self, tag: str | int, *, mark: bool = False, crossing: bool = False, payload: bool = False
    ) -> int:
        """Return a ring record's second word without the duration.

        UsageError for what such a record has no room for.
        """
        if payload:
            raise UsageError(
                "records of mode 'smem' have no room for a payload: use mode 'slices' or 'claim'"
            )
        return self.tag(tag) * _SPREAD


def plan_of(buffer: Buffer, *, enabled: bool = True, generation: bool = False) -> Plan:
    """Make the plan for kernels that record into `buffer`."""
    shape: Any = getattr(buffer, "shape", None)
    if not isinstance(shape, Shape):
        raise UsageError(
            f"bind() takes a buffer of warplens.intrakernel.allocate, not {type(buffer).__name__}"
        )
    if not enabled:
        return OFF
    if shape.mode == "smem" and shape.slots < 2:
        raise UsageError("slots=1: a ring in shared memory has at least 2")
    if shape.mode == "smem" and generation:
        raise UsageError("records of mode 'smem' have no room for a generation: use mode 'slices' or 'claim'")
    return Plan(
        mode=shape.mode,
        clock=shape.clock,
        warps=shape.warps,
        warp_mask=shape.warp_mask,
        sample_blocks=shape.sample_blocks,
        generation=generation,
        ring_slots=shape.slots if shape.mode == "smem" else 0,
        tags=tuple(buffer.tags.names),
    )


OFF = replace(Plan(), enabled=False)
