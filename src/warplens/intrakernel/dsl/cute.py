"""CuTe DSL: regions inside `@cute.kernel` functions of nvidia-cutlass-dsl.

A kernel takes what `bind(buffer)` gives as one argument. `profiler(prof)` at its top begins the recording of each warp,
`finish(p)` at its end completes it; between them `with region(p, "load"):`, `start` and `stop` for regions that are no block
of code, and `mark`. What is bound outside a region is visible inside and the other way round, in loops, dynamic branches,
`elect_one`, `@cute.jit` functions (pass them `p`) and methods. Tags are names of the buffer's table or numbers.

Call these as plain functions (`from warplens.intrakernel.dsl.cute import region`): within dynamic `for`, `while` and `if`
CuTe DSL refuses calls through a module or an object (`ik.region(…)`), and conditional expressions in the line of a `with`.

## Install

`pip install nvidia-cutlass-dsl` (4.5.3 … 4.8.1 are tested). Kernels compile without a GPU; running them needs one of sm_80 or later.

## Example

    import cutlass
    import cutlass.cute as cute
    from warplens import intrakernel
    from warplens.intrakernel.dsl.cute import bind, finish, mark, profiler, region

    @cute.kernel
    def scale(x: cute.Tensor, n: cutlass.Int32, prof):
        p = profiler(prof)
        thread, _, _ = cute.arch.thread_idx()
        for i in cutlass.range(n):
            with region(p, "load"):
                value = x[i * 128 + thread]
            with region(p, "store", payload=i):
                x[i * 128 + thread] = value * 2.0
        mark(p, "done")
        finish(p)

    @cute.jit
    def launch(x: cute.Tensor, n: cutlass.Int32, prof):
        scale(x, n, prof).launch(grid=(64, 1, 1), block=(128, 1, 1))

    buffer = intrakernel.allocate(grid=64, warps=4, tags=["load", "store", "done"])
    with buffer.launch("scale"):
        launch(x, 8, bind(buffer))
    print(buffer.decode().events)

## Overhead

Per region two clock reads and one predicated 16-byte store: 6 or 7 instructions per pass of a loop, 8 with a payload that is
computed or 0, or with a generation; 8 registers; no atomics (one per warp in mode `claim`), branches or local memory. About
90 instructions at kernel entry, 20 at its end. Mode `smem` takes 8 bytes of shared memory per slot and warp, rounded up to
1 KiB. `bind(buffer, enabled=False)` compiles to the same machine code as a kernel without regions.

## What the compiler may move

Clock reads and records keep their order among each other and with loads and stores. A load starts in its region but its
value arrives where it is first used; TMA, `cp.async` and WGMMA only start there: include their wait to time them. Arithmetic
that touches no memory may cross a border. A record counts as one instruction, so a loop may be unrolled more than without:
`cutlass.range(…, unroll=1)` keeps it. Where lane 0 of a warp does not run a region, it is not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import cutlass.cute as cute
from cutlass import Int32

from warplens.errors import UsageError
from warplens.intrakernel import driver, dsl
from warplens.intrakernel.device import cute_asm as asm
from warplens.intrakernel.device.cute_binding import CuteBinding
from warplens.intrakernel.plan import OFF, plan_of
from warplens.model import intrakernel_layout as layout

if TYPE_CHECKING:
    from types import TracebackType

    from warplens.intrakernel.buffers import Buffer
    from warplens.intrakernel.plan import Plan


def bind(buffer: Buffer, *, enabled: bool = True, generation: bool = False) -> CuteBinding:
    """Return the argument that lets kernels record into `buffer`.

    Compiled once, they take that of any buffer of the same kind.

    Args:
        buffer: of `allocate`.
        enabled: False records nothing, and the kernel compiles to what it is without regions.
        generation: put the launch's number into every record; one instruction more for each.
    """
    return CuteBinding(plan_of(buffer, enabled=enabled, generation=generation), buffer.pointer)


@dataclass(frozen=True, eq=False)  # CuTe DSL takes what can be changed for a value that loops have to carry
class Profiler:
    """What one thread of a kernel records with; `profiler` makes it.

    Attributes:
        plan: how to record.
        buffer: the buffer's address.
        first: place of the first record (used in mode `smem`).
        limit: place behind the last record; 0: this thread records nothing.
        generation: the launch's number in the high 8 bits, or None.
        cursor: one word of registers, the place of the next record.
        ring: address in shared memory, or None.
    """

    plan: Plan
    buffer: Any = None
    first: Any = None
    limit: Any = None
    generation: Any = None
    cursor: Any = None
    ring: Any = None


def profiler(prof: CuteBinding, *, enabled: bool = True) -> Profiler:
    """Begin the recording of this warp: at kernel top, outside all loops and branches.

    Args:
        prof: the kernel's argument, from `bind`.
        enabled: False records nothing and emits nothing.

    Raises:
        UsageError: `prof` is not from `bind`, or this is in a loop.
    """
    if not isinstance(prof, CuteBinding):
        raise UsageError(
            f"profiler() takes the result of bind(buffer), not {type(prof).__name__}: pass "
            "bind(buffer) to the kernel"
        )
    plan = prof.plan
    if not enabled or not plan.enabled:
        return Profiler(OFF)
    if asm.in_loop():
        raise UsageError(
            "profiler() in a loop restarts in each pass and keeps only the last one: call it once, "
            "at the kernel's top"
        )
    first, limit, generation, *ring = asm.begin(plan, prof.pointer)
    cursor = cute.make_rmem_tensor(1, Int32)
    cursor[0] = Int32(0) if ring else first
    high = generation << Int32(24) if plan.generation else None
    return Profiler(plan, prof.pointer, first, limit, high, cursor, ring[0] if ring else None)


class _Region:
    """A region as a block.

    It opens no scope of the compiler's, so what is bound inside lives on.
    """

    __dsl_trace_time_ctxmgr__ = True  # how CuTe DSL calls managers that only run while a kernel is compiled

    def __init__(self, prof: Profiler, tag: Any, payload: Any) -> None:
        self._prof, self._tag, self._payload = prof, tag, payload
        self._begin: Any = None

    def __enter__(self) -> None:
        self._begin = start(self._prof)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            _record(self._prof, self._tag, self._payload, self._begin)


def region(prof: Profiler, tag: str | int, payload: Any = None) -> _Region:
    """Time a block of code, the `with` statement's.

    Args:
        prof: of `profiler`.
        tag: a name of the buffer's table, or a number.
        payload: kept with the record: a constant or a 32-bit integer, e.g. a tile's number.
    """
    return _Region(prof, tag, payload)


def start(prof: Profiler) -> Any:
    """Begin a region that is no block of code; the token (an Int32) is for `stop`.

    It may cross other regions.
    """
    return asm.timer(prof.plan) if prof.plan.enabled else Int32(0)


def stop(prof: Profiler, token: Any, tag: str | int, payload: Any = None) -> None:
    """End the region that `start` began; arguments as `region`."""
    _record(prof, tag, payload, token, crossing=True)


def mark(prof: Profiler, tag: str | int, payload: Any = None) -> None:
    """Record one moment; arguments as `region`."""
    _record(prof, tag, payload, None)


def finish(prof: Profiler) -> None:
    """Complete the recording of this warp, where its kernel ends.

    Without it records are kept, but not how many were dropped.

    In mode `smem` without it nothing is kept.
    """
    if prof.plan.enabled:
        asm.end(
            prof.plan,
            (
                prof.buffer,
                prof.limit,
                prof.cursor[0],
                *(() if prof.ring is None else (prof.first, prof.ring)),
            ),
        )


def _record(prof: Profiler, tag: Any, payload: Any, begin: Any, *, crossing: bool = False) -> None:
    if not isinstance(prof, Profiler):
        raise UsageError(
            f"regions and marks take the result of profiler(prof), not {type(prof).__name__}: p = "
            "profiler(prof) at the top"
        )
    plan = prof.plan
    if not plan.enabled:
        return
    place = prof.cursor[0]
    is_mark = begin is None
    if plan.mode == "smem":
        word = plan.ring_word(tag, mark=is_mark, crossing=crossing, payload=payload is not None)
        asm.ring_record(
            plan, (prof.ring, prof.limit, place, _word(word), *(() if is_mark else (begin,))), mark=is_mark
        )
        prof.cursor[0] = place + Int32(layout.RING_RECORD_BYTES)
        return
    # A word of 0 is made again for each record, any other is kept in a register; without a generation its bits mean nothing.
    third = _word(plan.word(tag, mark=is_mark, crossing=crossing, payload=payload is not None) or 1 << 24)
    if plan.generation:
        third = third | prof.generation
    fourth = None if payload is None else _payload(payload)
    asm.record(plan, (prof.buffer, prof.limit, place, third), payload=fourth, begin=begin)
    prof.cursor[0] = place + Int32(1)


def _word(value: int) -> Any:
    """A 32-bit constant: Int32 takes no unsigned ones."""
    return Int32(value - (1 << 32) if value >= 1 << 31 else value)


def _payload(value: Any) -> Any:
    if isinstance(value, int):
        if not -(1 << 31) <= value < 1 << 32:
            raise UsageError(f"payload {value}: a record has room for 32 bits")
        return _word(value)
    if (
        isinstance(value, float)
        or not hasattr(value, "ir_value")
        or not getattr(type(value), "is_integer", True)
    ):
        raise UsageError(f"a payload must be an integer, not {type(value).__name__}")
    return Int32(value)


def ways() -> dict[str, str | None]:
    """List the ways to run kernels, best first, with what each lacks here."""
    return {"gpu": driver.why_no_device()}


def example(way: str) -> Buffer:
    """Run the example kernel, and return its buffer."""
    from warplens.intrakernel.buffers import allocate

    del way  # there is one
    buffer = allocate(grid=dsl.EXAMPLE_GRID, warps=4, slots=32, tags=dsl.EXAMPLE_TAGS)
    import_module("warplens.intrakernel.examples.cute").run(buffer)
    return buffer
