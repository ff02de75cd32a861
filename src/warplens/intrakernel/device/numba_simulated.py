"""Recording functions for kernels in Numba's simulator.

Each simulated thread is a host thread and keeps its unit.
"""

from __future__ import annotations

import threading
from typing import Any

from warplens.errors import UsageError
from warplens.intrakernel import simulated
from warplens.intrakernel.plan import Plan


def _plan(prof: Any) -> Plan:
    plan = getattr(type(prof), "plan", None)
    if not isinstance(plan, Plan):
        raise UsageError(f"needs the result of warplens.intrakernel.dsl.numba.bind(buffer), not {prof!r}")
    return plan


def profiler(prof: Any) -> Any:
    """Begin the recording of this warp."""
    plan = _plan(prof)
    if plan.enabled:
        thread: Any = threading.current_thread()
        wide, high = (*thread._manager._grid_dim, 1, 1)[:2]
        block = thread.blockIdx
        thread.warplens = simulated.SimulatedUnit(
            prof.pointer, plan, (block.z * high + block.y) * wide + block.x, thread.thread_id
        )
    return prof


def start(p: Any) -> int:
    """Read the clock for a region that `stop` ends."""
    plan = _plan(p)
    return simulated.now(plan) if plan.enabled else 0


def stop(p: Any, began: int, tag: str | int, payload: int | None = None, crossing: bool = False) -> None:
    """End the region that began at `began`."""
    _put(p, began, tag, payload, crossing)


def mark(p: Any, tag: str | int, payload: int | None = None) -> None:
    """Record one moment."""
    _put(p, None, tag, payload, False)


def finish(p: Any) -> None:
    """End the recording of this warp."""
    if _plan(p).enabled:
        _unit().finish()


def _unit() -> simulated.SimulatedUnit:
    unit = getattr(threading.current_thread(), "warplens", None)
    if unit is None:
        raise UsageError("this kernel records without a call of profiler(prof) at its top")
    return unit  # type: ignore[no-any-return]


def _put(p: Any, began: int | None, tag: str | int, payload: int | None, crossing: bool) -> None:
    plan = _plan(p)
    if plan.enabled:
        make = plan.ring_word if plan.mode == "smem" else plan.word
        word = make(tag, mark=began is None, crossing=crossing, payload=payload is not None)
        if isinstance(payload, float) or not (payload is None or hasattr(payload, "__index__")):
            raise UsageError(f"a payload must be an integer (32 bits are kept), not {payload!r}")
        _unit().record(word, None if began is None else int(began), None if payload is None else int(payload))
