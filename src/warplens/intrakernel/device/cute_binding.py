"""A buffer as an argument of CuTe DSL functions.

Its address when the kernel runs, its plan while the kernel is compiled.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cutlass import Int64

if TYPE_CHECKING:
    from warplens.intrakernel.plan import Plan


class CuteBinding:
    """What `bind` returns.

    Its methods are those that CuTe DSL asks of arguments; a function gets one 64-bit parameter for
    it.

    Attributes:
        plan: how to record.
        pointer: the buffer's address, while a kernel is compiled its value there.
    """

    def __init__(self, plan: Plan, pointer: Any) -> None:
        self.plan = plan
        self.pointer = pointer
        self._word = ctypes.c_uint64(pointer) if isinstance(pointer, int) else None

    def __c_pointers__(self) -> list[ctypes.c_void_p]:
        return [ctypes.cast(ctypes.pointer(self._word), ctypes.c_void_p)]  # type: ignore[type-var]

    def __get_mlir_types__(self) -> list[Any]:
        return [Int64.mlir_type]

    def __extract_mlir_values__(self) -> list[Any]:
        return [Int64(self.pointer).ir_value()]

    def __new_from_mlir_values__(self, values: list[Any]) -> CuteBinding:
        return CuteBinding(self.plan, Int64(values[0]))

    def __cache_key__(self) -> tuple[Any, ...]:
        return ("warplens", repr(self.plan))

    def __repr__(self) -> str:
        return "prof"  # CuTe DSL makes it a part of the kernel's name
