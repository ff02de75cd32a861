"""Where memory is, from DLPack capsules: made by hand, so that devices that are not here are, too."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from warplens.errors import UsageError
from warplens.intrakernel.dlpack import _Tensor, address_in_dlpack


class Exports:
    """An array that exports a capsule of this device and shape."""

    def __init__(
        self, kind: int, shape: tuple[int, ...] = (4, 8), strides: tuple[int, ...] = (), offset: int = 0
    ) -> None:
        self.tensor = _Tensor(
            data=0x10000, device_type=kind, ndim=len(shape), bits=64, lanes=1, byte_offset=offset
        )
        self.tensor.shape = (ctypes.c_int64 * len(shape))(*shape)
        if strides:
            self.tensor.strides = (ctypes.c_int64 * len(shape))(*strides)

    def __dlpack__(self) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.parametrize(
    ("kind", "on_host"),
    [(1, True), (2, False), (3, False), (13, False)],
    ids=["cpu", "cuda", "pinned", "managed"],
)
def test_address_and_size(kind: int, on_host: bool) -> None:
    assert address_in_dlpack(Exports(kind), "array")[:3] == (0x10000, 256, on_host)
    assert address_in_dlpack(Exports(kind, offset=64, strides=(8, 1)), "array")[:2] == (0x10040, 256)
    assert address_in_dlpack(Exports(kind, shape=(1, 8), strides=(99, 1)), "array")[1] == 64


def test_memory_elsewhere_or_not_contiguous_is_refused() -> None:
    with pytest.raises(UsageError, match="kind 10"):
        address_in_dlpack(Exports(10), "array")
    with pytest.raises(UsageError, match="not contiguous"):
        address_in_dlpack(Exports(2, strides=(16, 1)), "array")


def test_a_failed_export_passes_its_reason_on() -> None:
    class Refuses:
        def __dlpack__(self) -> None:
            raise RuntimeError("needs a gradient")

    with pytest.raises(UsageError, match="needs a gradient"):
        address_in_dlpack(Refuses(), "array")
