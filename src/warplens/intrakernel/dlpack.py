"""Reads the address of an array from its DLPack capsule with ctypes; no framework is needed."""

from __future__ import annotations

import ctypes
from typing import Any

from warplens.errors import UsageError

_HOST_KINDS = (1,)  # kDLCPU
_CUDA_KINDS = (
    2,
    3,
    13,
)  # kDLCUDA, kDLCUDAHost (pinned: kernels write into it, so reading waits for them), kDLCUDAManaged


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, the same in all its versions."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def address_in_dlpack(array: Any, kind: str) -> tuple[int, int, bool, Any]:
    """Return the address, the bytes, whether it is memory of the host, and the capsule that keeps it.

    UsageError if the array does not let anybody write, is on a device that is neither CUDA's nor the host, or is not contiguous.
    """
    try:
        capsule = array.__dlpack__()
    except (
        BufferError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:  # read-only, needs a gradient, another stream, …
        raise UsageError(f"this {kind} does not export its memory: {error}") from None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    if tensor.device_type not in _HOST_KINDS + _CUDA_KINDS:
        raise UsageError(
            f"this {kind} is on a device of DLPack's kind {tensor.device_type}: only CUDA and host "
            "memory are supported"
        )
    expected = 1
    for axis in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[axis] > 1 and tensor.strides[axis] != expected:
            raise UsageError(f"the memory of this {kind} is not contiguous")
        expected *= tensor.shape[axis]
    nbytes = expected * tensor.bits * tensor.lanes // 8
    return (tensor.data or 0) + tensor.byte_offset, nbytes, tensor.device_type in _HOST_KINDS, capsule
