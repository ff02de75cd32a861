"""The recorder's PTX as operations of CuTe DSL.

Side effects and a memory clobber keep them where the source has them.
"""

from __future__ import annotations

from typing import Any

from cutlass import Int32, Int64
from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm
from cutlass.cutlass_dsl import T, dsl_user_op

from warplens.intrakernel.device import cute_ptx as ptx
from warplens.intrakernel.plan import Plan


def _asm(result: Any, values: list[Any], text: str, constraints: str, loc: Any, ip: Any) -> Any:
    operands = [value.ir_value(loc=loc, ip=ip) for value in values]
    return llvm.inline_asm(
        result,
        operands,
        text,
        constraints,
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
        loc=loc,
        ip=ip,
    )


@dsl_user_op
def begin(plan: Plan, buffer: Int64, *, text: str = "", loc: Any = None, ip: Any = None) -> tuple[Any, ...]:
    """Kernel entry: (place of the first record, limit, generation), in mode `smem` also the ring.

    The ring by its address. `text`: another prologue.
    """
    count = 4 if plan.mode == "smem" else 3
    packed = llvm.StructType.get_literal([T.i32()] * count)
    result = _asm(packed, [buffer], text or ptx.begin(plan), "=&r," * count + "l,~{memory}", loc, ip)
    take = [ir.DenseI64ArrayAttr.get([at]) for at in range(count)]
    return tuple(Int32(llvm.extractvalue(T.i32(), result, at, loc=loc, ip=ip)) for at in take)


@dsl_user_op
def globaltimer(*, loc: Any = None, ip: Any = None) -> Int64:
    """The device's clock in ns, all of it."""
    return Int64(_asm(T.i64(), [], "mov.u64 $0, %globaltimer;", "=l,~{memory}", loc, ip))


@dsl_user_op
def only_warp(limit: Any, warp: Any, *, loc: Any = None, ip: Any = None) -> Int32:
    """The limit in this warp, in others 0."""
    return Int32(_asm(T.i32(), [limit, warp], ptx.only_warp(), "=r,r,r", loc, ip))


@dsl_user_op
def one_if(limit: Any, *, loc: Any = None, ip: Any = None) -> Int32:
    """1 where the limit is not 0."""
    return Int32(_asm(T.i32(), [limit], "min.u32 $0, $1, 1;", "=r,r", loc, ip))


@dsl_user_op
def timer(plan: Plan, *, loc: Any = None, ip: Any = None) -> Int32:
    """The low word of the clock, read here and now."""
    return Int32(_asm(T.i32(), [], ptx.timer(plan), "=r,~{memory}", loc, ip))


@dsl_user_op
def record(
    plan: Plan,
    values: tuple[Any, ...],
    *,
    payload: Any = None,
    begin: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> None:
    """One record: values are buffer, limit, place and word; without a begin it is a mark."""
    text = ptx.record(plan, mark=begin is None, payload=payload is not None)
    operands = [*values, *(value for value in (payload, begin) if value is not None)]
    _asm(None, operands, text, "l" + ",r" * (len(operands) - 1) + ",~{memory}", loc, ip)


@dsl_user_op
def ring_record(
    plan: Plan, values: tuple[Any, ...], *, mark: bool = False, loc: Any = None, ip: Any = None
) -> None:
    """One short record: values are ring, records, offset, tag << 24 and, for a region, its begin."""
    _asm(
        None,
        list(values),
        ptx.ring_record(plan, mark=mark),
        ",".join("r" * len(values)) + ",~{memory}",
        loc,
        ip,
    )


@dsl_user_op
def end(plan: Plan, values: tuple[Any, ...], *, loc: Any = None, ip: Any = None) -> None:
    """Kernel end: values are buffer, limit, place, and the place of the first record if known.

    In mode `smem` also the ring.
    """
    text = ptx.ring_end(plan) if plan.mode == "smem" else ptx.end(first_known=len(values) > 3)
    _asm(None, list(values), text, "l" + ",r" * (len(values) - 1) + ",~{memory}", loc, ip)


def in_loop() -> bool:
    """Whether what is emitted now goes into a loop of the kernel.

    False if this release does not tell.
    """
    try:
        op = ir.InsertionPoint.current.block.owner
        while op is not None:
            op = op.operation
            if op.name in ("scf.for", "scf.while"):
                return True
            op = op.parent
    except (AttributeError, ValueError, RuntimeError):
        pass
    return False
