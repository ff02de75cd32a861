"""The reference design's device functions for CuTe DSL, under their own names.

`warplens.intrakernel.nuggets` has the host's.

    with profile_region(prof_buf, max_events, Int32(TAG), bidx): …
    eid = lane0_warp0_start(prof_buf, max_events) … lane0_warp0_stop(prof_buf, eid, Int32(TAG), bidx, max_events)

`prof_buf` is the kernel's parameter for `prof.tensor`. A recording lane claims a slice of it at kernel entry, with one atomic; what a
start returns is only to be handed to its stop. In new code `warplens.intrakernel.dsl.cute` costs a fraction of this, since
its units are completed once and not after each event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutlass import Int32, Int64

from warplens.intrakernel.device import cute_asm as asm
from warplens.intrakernel.device import cute_ptx as ptx
from warplens.intrakernel.device.nuggets_units import Who, unit_of
from warplens.model import intrakernel_layout as layout

if TYPE_CHECKING:
    from types import TracebackType

_FIRST_WARP = Who(warp=0)
_EVERY_WARP = Who()
_ELECTED = Who(leader=ptx.ELECTED)
_EVERY_THREAD = Who(leader=ptx.EACH)
_FLAGS = (layout.HAS_PAYLOAD | layout.HAS_GENERATION) << 16


def read_globaltimer() -> Int64:
    """Read the device's clock: ns, 64 bits."""
    return asm.globaltimer()


class profile_region:
    """Time a block, by lane 0 of warp 0 of each CTA.

    `with profile_region(prof_buf, max_events, tag, tid):`.
    """

    __dsl_trace_time_ctxmgr__ = True

    def __init__(self, buf: Any, max_events: Any, tag: Any, tid: Any) -> None:
        self._buf, self._max_events, self._tag, self._tid = buf, max_events, tag, tid
        self._event: Any = None

    def __enter__(self) -> None:
        self._event = lane0_warp0_start(self._buf, self._max_events)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            lane0_warp0_stop(self._buf, self._event, self._tag, self._tid, self._max_events)


def lane0_warp0_start(buf: Any, max_events: Any) -> Int32:
    """Begin an event of lane 0 of warp 0 of each CTA."""
    return _start(buf, max_events, _FIRST_WARP)


def lane0_warp0_stop(buf: Any, eid: Any, tag: Any, tid: Any, max_events: Any) -> None:
    """End it."""
    _stop(buf, eid, tag, tid, max_events, _FIRST_WARP)


def warp_start(buf: Any, max_events: Any, target_warp: Any) -> Int32:
    """Begin an event of lane 0 of one warp of each CTA."""
    return _start(buf, max_events, _one_warp(target_warp))


def warp_stop(buf: Any, eid: Any, tag: Any, tid: Any, max_events: Any, target_warp: Any) -> None:
    """End it."""
    who = _one_warp(target_warp)
    _stop(buf, eid, tag, tid, max_events, who, target_warp if who.warp is None else None)


def elected_start(buf: Any, max_events: Any) -> Int32:
    """Begin an event of each warp, by the lane that `elect_one` picks (before Hopper by lane 0).

    Within `elect_one` or outside.
    """
    return _start(buf, max_events, _ELECTED)


def elected_stop(buf: Any, eid: Any, tag: Any, tid: Any, max_events: Any) -> None:
    """End it."""
    _stop(buf, eid, tag, tid, max_events, _ELECTED)


def profile_start(buf: Any, max_events: Any) -> Int32:
    """Begin an event of each thread."""
    return _start(buf, max_events, _EVERY_THREAD)


def profile_stop(buf: Any, eid: Any, tag: Any, tid: Any, max_events: Any) -> None:
    """End it."""
    _stop(buf, eid, tag, tid, max_events, _EVERY_THREAD)


def _constant(value: Any) -> int | None:
    """The number that a Python int or an Int32 of one stands for.

    None for a value of the running kernel.
    """
    number = getattr(value, "value", value)
    return number if isinstance(number, int) else None


def _one_warp(target: Any) -> Who:
    number = _constant(target)
    return _EVERY_WARP if number is None else Who(warp=number)


def _start(buf: Any, max_events: Any, who: Who) -> Int32:
    del max_events  # the buffer knows it
    return asm.timer(unit_of(buf, who).plan)


def _stop(buf: Any, eid: Any, tag: Any, tid: Any, max_events: Any, who: Who, target: Any = None) -> None:
    del max_events
    unit = unit_of(buf, who)
    number = _constant(tag)
    word = (
        Int32(number & 0xFFFF | _FLAGS) if number is not None else Int32(tag) & Int32(0xFFFF) | Int32(_FLAGS)
    )
    word = word | unit.generation << Int32(24)
    limit = unit.limit if target is None else asm.only_warp(unit.limit, Int32(target))
    place = unit.place()
    asm.record(unit.plan, (unit.buffer, limit, place, word), payload=Int32(tid), begin=eid)
    # A lane that does not record does not count either: another warp may be the target next time.
    place = place + Int32(1) if target is None else place + asm.one_if(limit)
    unit.advance(place)
    asm.end(unit.plan, (unit.buffer, limit, place, unit.first))
