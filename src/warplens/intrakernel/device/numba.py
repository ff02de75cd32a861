"""Recording functions for Numba-CUDA kernels, as intrinsics that become assembly where they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import errors, types
from numba.core.extending import intrinsic

from warplens.errors import UsageError
from warplens.intrakernel import ptx
from warplens.intrakernel.plan import Plan

_WORD = ir.IntType(32)
_Emit = Callable[[Any, list[Any]], Any]


def _plan(prof: Any) -> Plan:
    """The plan that is in the type of the kernel's argument."""
    plan = getattr(getattr(prof, "instance_class", None), "plan", None)
    if not isinstance(plan, Plan):
        raise errors.TypingError(
            f"needs the result of warplens.intrakernel.dsl.numba.bind(buffer), not {prof}"
        )
    return plan


def _asm(builder: Any, text: str, operands: list[Any], result: Any = None) -> Any:
    constraints = (
        (["=r"] if result else [])
        + ["l" if operand.type.width == 64 else "r" for operand in operands]
        + ["~{memory}"]
    )
    kind = ir.FunctionType(result or ir.VoidType(), [operand.type for operand in operands])
    return builder.call(ir.InlineAsm(kind, text, ",".join(constraints), side_effect=True), operands)


def _word(builder: Any, value: Any) -> Any:
    """The low 32 bits of an integer."""
    width = value.type.width
    return value if width == 32 else builder.trunc(value, _WORD) if width > 32 else builder.zext(value, _WORD)


def _given(kind: Any) -> Any:
    """The type of an argument; a default arrives here as itself."""
    return kind if isinstance(kind, types.Type) else types.Omitted(kind)


def _constant(kind: Any) -> Any:
    """The value of a literal or of an omitted default.

    None if it is known only when the kernel runs.
    """
    if isinstance(kind, types.Omitted):
        return kind.value
    return getattr(kind, "literal_value", None)


def _put(p: Any, began: Any, tag: Any, payload: Any, crossing: Any) -> tuple[bool, _Emit]:
    """Check the words of a record.

    Whether there is any, and what emits it from the values of `began` and `payload`.
    """
    plan, name = _plan(p), _constant(tag)
    if not isinstance(name, int | str):
        raise errors.TypingError("a tag must be a name or a number that is known when the kernel is compiled")
    kept = _constant(payload)
    without = payload is types.none or (isinstance(payload, types.Omitted) and kept is None)
    if not without and kept is None and not isinstance(payload, types.Integer | types.Boolean):
        raise errors.TypingError(f"a payload must be an integer (32 bits are kept), not {payload}")
    make = plan.ring_word if plan.mode == "smem" else plan.word
    try:
        word = (
            make(name, mark=began is None, crossing=bool(_constant(crossing)), payload=not without)
            if plan.enabled
            else 0
        )
    except UsageError as error:
        raise errors.TypingError(str(error)) from None

    def emit(builder: Any, values: list[Any]) -> None:
        operands = [] if began is None else [_word(builder, values[0])]
        place: Any = kept
        if not without and kept is None:
            place = f"${len(operands)}"
            operands.append(_word(builder, values[-1]))
        _asm(
            builder,
            ptx.end(plan, word, None if began is None else "$0", None if without else place),
            operands,
        )

    return plan.enabled, emit


@intrinsic(target="cuda", prefer_literal=True)
def profiler(context: Any, prof: Any) -> Any:
    """Begin the recording of this warp, once and at the top of the kernel.

    `prof` is the argument that `bind` made.
    """
    plan = _plan(prof)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if plan.enabled:
            _asm(builder, ptx.begin(plan, "$0"), [builder.extract_value(values[0], 0)])
        return values[0]

    return prof(prof), emit


@intrinsic(target="cuda", prefer_literal=True)
def start(context: Any, p: Any) -> Any:
    """Read the clock for a region that `stop` ends: a 32-bit number."""
    plan = _plan(p)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _asm(builder, ptx.now(plan), [], _WORD) if plan.enabled else ir.Constant(_WORD, 0)

    return types.uint32(p), emit


@intrinsic(target="cuda", prefer_literal=True)
def stop(context: Any, p: Any, began: Any, tag: Any, payload: Any = None, crossing: Any = False) -> Any:
    """End the region that began at `began`.

    `payload`: 32 bits to keep with it; `crossing`: it may end within another one.
    """
    payload, crossing = _given(payload), _given(crossing)
    on, put = _put(p, began, tag, payload, crossing)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if on:
            put(builder, [values[1], values[3]])
        return context.get_dummy_value()

    return types.void(p, began, tag, payload, crossing), emit


@intrinsic(target="cuda", prefer_literal=True)
def mark(context: Any, p: Any, tag: Any, payload: Any = None) -> Any:
    """Record one moment."""
    payload = _given(payload)
    on, put = _put(p, None, tag, payload, types.Omitted(False))

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if on:
            put(builder, [values[2]])
        return context.get_dummy_value()

    return types.void(p, tag, payload), emit


@intrinsic(target="cuda", prefer_literal=True)
def finish(context: Any, p: Any) -> Any:
    """End the recording of this warp: the last that a kernel does."""
    plan = _plan(p)

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if plan.enabled:
            _asm(builder, ptx.finish(plan), [])
        return context.get_dummy_value()

    return types.void(p), emit
