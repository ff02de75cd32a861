"""Units for functions that only get a buffer.

They begin where the kernel begins, at any place of the first use.

A use may stand in a loop, and its unit must not be claimed in every pass. So its prologue goes to the kernel's first block, and
the kernel's own operations say whether it is there: what is compiled is kept nowhere else, and two compilations never meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutlass import Int32, Int64
from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import Arch, BaseDSL, T

from warplens.errors import UsageError
from warplens.intrakernel.device import cute_asm as asm
from warplens.intrakernel.device import cute_ptx as ptx
from warplens.intrakernel.plan import Plan

_ALL_WARPS = 32  # no CTA has more


def _is_hopper() -> bool:
    return bool(BaseDSL._get_dsl().get_arch_enum() >= Arch.sm_90)


@dataclass(frozen=True)
class Who:
    """The threads of a CTA that have a unit: leaders of all warps, of one, or every thread.

    A leader is lane 0, or the one that is elected.
    """

    warp: int | None = None
    leader: str = ptx.LANE_0

    @property
    def plan(self) -> Plan:
        """How they record; the clock is the one that buffers of the device have."""
        mask = 0 if self.warp is None else 1 << self.warp
        return Plan(
            mode="claim",
            clock="globaltimer" if _is_hopper() else "clock",
            generation=True,  # nothing ends these units but their last record
            warps=_ALL_WARPS if self.warp is None else 1,
            warp_mask=mask,
        )


@dataclass(frozen=True)
class NuggetsUnit:
    """One thread's slice while a kernel is compiled.

    Values of its first block, and the memory of the cursor.
    """

    plan: Plan
    buffer: Any
    first: Any
    limit: Any
    generation: Any
    cursor: Any

    def place(self) -> Any:
        """The place of the next record."""
        return Int32(llvm.load(T.i32(), self.cursor))

    def advance(self, place: Any) -> None:
        """Move the cursor."""
        llvm.store(Int32(place).ir_value(), self.cursor)


def unit_of(buffer: Any, who: Who) -> NuggetsUnit:
    """Return the unit of these threads in `buffer`, a parameter of the kernel.

    Raises:
        UsageError: `buffer` is no parameter of a kernel, or this is not a kernel.
    """
    value = _value(buffer)
    block = _first_block(value)
    plan = who.plan
    # Before Hopper nobody can be elected.
    leader = ptx.LANE_0 if who.leader == ptx.ELECTED and not _is_hopper() else who.leader
    # The text tells prologues apart: of which parameter, for whom.
    text = f"// warplens: parameter {value.arg_number}, {who}\n{ptx.begin(plan, leader=leader)}"
    operations = list(block.operations)
    for at, operation in enumerate(operations):
        if (
            operation.operation.name == "llvm.inline_asm"
            and ir.StringAttr(operation.operation.attributes["asm_string"]).value == text
        ):
            return _known(plan, operations, at)
    with ir.InsertionPoint.at_block_begin(block):
        return _begun(plan, buffer, value, text)


def _value(buffer: Any) -> Any:
    value = getattr(buffer, "value", None)
    if not isinstance(value, ir.Value):
        value = buffer.ir_value() if hasattr(buffer, "ir_value") else None
    if value is None or not isinstance(value.owner, ir.Block):
        what = type(buffer).__name__ if value is None else "one that was made from it"
        raise UsageError(
            f"a profile buffer is a parameter of the kernel (its int64 tensor), not {what}: pass it as it came in"
        )
    return ir.BlockArgument(value)


def _first_block(value: Any) -> Any:
    operation = ir.InsertionPoint.current.block.owner
    while operation is not None and not operation.operation.name.endswith((".kernel", ".func")):
        operation = operation.operation.parent
    if operation is None or operation.operation.regions[0].blocks[0] != value.owner:
        raise UsageError(
            "a profile buffer is used in the kernel that has it as a parameter, not in a function that was not inlined"
        )
    return value.owner


def _begun(plan: Plan, buffer: Any, value: Any, text: str) -> NuggetsUnit:
    if hasattr(buffer, "iterator"):
        pointer = buffer.__new_from_mlir_values__([value]).iterator.toint()
    else:
        pointer = Int64(value)
    cursor = llvm.alloca(llvm.PointerType.get(), Int32(1).ir_value(), T.i32())
    first, limit, generation = asm.begin(plan, pointer, text=text)
    llvm.store(first.ir_value(), cursor)
    return NuggetsUnit(plan, pointer, first, limit, generation, cursor)


def _known(plan: Plan, operations: list[Any], at: int) -> NuggetsUnit:
    """Read back what `_begun` wrote: the cursor's memory before the prologue, its three results behind it."""
    first, limit, generation = (
        Int32(operation.operation.results[0]) for operation in operations[at + 1 : at + 4]
    )
    pointer = Int64(operations[at].operation.operands[0])
    return NuggetsUnit(plan, pointer, first, limit, generation, operations[at - 1].operation.results[0])
