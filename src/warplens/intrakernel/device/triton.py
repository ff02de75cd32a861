"""Recording functions for Triton kernels: assembly in compiled kernels, host code in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from triton.language import core as tl

from warplens.errors import UsageError
from warplens.intrakernel import ptx, simulated
from warplens.intrakernel.plan import Plan

_Any = TypeVar("_Any", bound=Callable[..., Any])


def _device(function: _Any) -> _Any:
    """Let kernels call `function`.

    Compilers pass `_semantic`; the interpreter calls it as it is.
    """

    @wraps(function)
    def call(*words: Any, **named: Any) -> Any:
        return function(*words, **named)

    call.__triton_builtin__ = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


class _Compiled(tl.base_value):
    """A recording program while its kernel is compiled: nothing but its plan, so it needs no register."""

    def __init__(self, plan: Plan) -> None:
        self.type = _CompiledType(plan)
        self.plan = plan

    def _set_name(self, builder: Any, name: str) -> None:
        pass

    def _flatten_ir(self, handles: list[Any]) -> None:
        pass


class _CompiledType(tl.base_type):
    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CompiledType) and other.plan == self.plan

    def __hash__(self) -> int:
        return hash(self.plan)

    def __repr__(self) -> str:
        return f"profiler[{self.plan}]"

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[_Compiled, int]:
        return _Compiled(self.plan), cursor

    def mangle(self) -> str:
        return "".join(letter if letter.isalnum() else "_" for letter in repr(self.plan))

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        pass


def _plain(value: Any) -> Any:
    return tl._unwrap_if_constexpr(value)


def _emit(text: str, operands: list[Any], semantic: Any) -> Any:
    """Emit assembly with a 32-bit result, which every asm of Triton must have."""
    return tl.inline_asm_elementwise(
        text, ",".join(["=r", *("l" if operand.dtype.is_int64() else "r" for operand in operands), "~{memory}"]), operands,
        dtype=tl.int32, is_pure=False, pack=1, _semantic=semantic,
    )  # fmt: skip


@_device
def profiler(prof: Any, _semantic: Any = None) -> Any:
    """Begin the recording of this program, once and at the top of the kernel.

    `prof` is the argument that `bind` made.
    """
    try:
        plan = _plain(prof[1])
    except Exception:  # whatever was passed, and however it answers
        plan = None
    if not isinstance(plan, Plan):
        raise UsageError(
            "profiler() takes the result of warplens.intrakernel.dsl.triton.bind(buffer), which must "
            "be an argument of the kernel"
        )
    if _semantic is None:
        return _Interpreted(_number(prof[0]), plan)
    if plan.enabled:
        _emit(ptx.begin(plan, "$1") + " mov.u32 $0, 0;", [_semantic.to_tensor(prof[0])], _semantic)
    return _Compiled(plan)


@_device
def start(p: Any, _semantic: Any = None) -> Any:
    """Read the clock for a region that `stop` ends.

    A 32-bit number, which may be carried through loops and branches.
    """
    if isinstance(p, _Compiled):
        return _emit(ptx.now(p.plan), [], _semantic) if p.plan.enabled else _semantic.to_tensor(0)
    return p.now()


@_device
def stop(
    p: Any, began: Any, tag: Any, payload: Any = None, crossing: Any = False, _semantic: Any = None
) -> None:
    """End the region that began at `began`.

    `payload`: 32 bits to keep with it; `crossing`: it may end within another one.
    """
    _put(p, tag, began, payload, crossing, _semantic)


@_device
def mark(p: Any, tag: Any, payload: Any = None, _semantic: Any = None) -> None:
    """Record one moment."""
    _put(p, tag, None, payload, False, _semantic)


@_device
def finish(p: Any, _semantic: Any = None) -> None:
    """End the recording of this program: the last that a kernel does."""
    if isinstance(p, _Compiled):
        if p.plan.enabled:
            _emit(ptx.finish(p.plan) + " mov.u32 $0, 0;", [], _semantic)
    else:
        p.finish()


class region:
    """Record a block of a kernel: `with region(p, "load"):`, `with region(p, "tile", payload=i):`."""

    __triton_builtin__ = True

    def __init__(self, p: Any, tag: Any, payload: Any = None, _semantic: Any = None) -> None:
        self._p, self._tag, self._payload, self._semantic = p, tag, payload, _semantic

    def __enter__(self) -> None:
        self._began = start(self._p, _semantic=self._semantic)

    def __exit__(self, *error: object) -> None:
        _put(self._p, self._tag, self._began, self._payload, False, self._semantic)


def _put(p: Any, tag: Any, began: Any, payload: Any, crossing: Any, semantic: Any) -> None:
    plan, tag, payload = p.plan, _plain(tag), _plain(payload)
    if not isinstance(tag, int | str):
        raise UsageError(
            f"a tag must be a name or a number that is known when the kernel is compiled, not {tag!r}"
        )
    if not plan.enabled:
        return
    if isinstance(payload, float) or (
        isinstance(payload, tl.tensor) and (payload.type.is_block() or payload.dtype.is_floating())
    ):
        raise UsageError(
            "a payload must be one integer (32 bits are kept), not "
            f"{payload if isinstance(payload, float) else payload.type}"
        )
    word = (plan.ring_word if plan.mode == "smem" else plan.word)(
        tag, mark=began is None, crossing=bool(_plain(crossing)), payload=payload is not None
    )
    if not isinstance(p, _Compiled):
        p.record(word, began, payload)
        return
    operands = [] if began is None else [began]
    if isinstance(payload, tl.tensor):
        operands.append(payload.to(tl.int32, _semantic=semantic))
        payload = f"${len(operands)}"
    text = ptx.end(plan, word, None if began is None else "$1", payload)
    _emit(text + " mov.u32 $0, 0;", operands, semantic)


def _number(value: Any) -> int:
    """The number that a scalar of the interpreter holds."""
    return int(value.handle.data.item()) if isinstance(value, tl.tensor) else int(_plain(value))


class _Interpreted:
    """A program that the interpreter runs."""

    def __init__(self, pointer: int, plan: Plan) -> None:
        from triton.runtime.interpreter import interpreter_builder

        self.plan = plan
        if plan.enabled:
            (x, y, z), (wide, high, _) = interpreter_builder.grid_idx, interpreter_builder.grid_dim
            self._unit = simulated.SimulatedUnit(pointer, plan, (z * high + y) * wide + x, 0)

    def now(self) -> int:
        return simulated.now(self.plan)

    def record(self, word: int, began: Any, payload: Any) -> None:
        self._unit.record(
            word, None if began is None else _number(began), None if payload is None else _number(payload)
        )

    def finish(self) -> None:
        if self.plan.enabled:
            self._unit.finish()
