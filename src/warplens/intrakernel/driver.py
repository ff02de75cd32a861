"""The few calls of the CUDA driver that buffers need, by ctypes: no framework has to be there."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from warplens.errors import CaptureError

_COMPUTE_MAJOR, _COMPUTE_MINOR, _CLOCK_KHZ = 75, 76, 13  # CUdevice_attribute
_CONTEXT, _DEVICE_ORDINAL = 1, 9  # CUpointer_attribute
_CALLS = {
    "init": "cuInit",
    "count": "cuDeviceGetCount",
    "device": "cuDeviceGet",
    "attribute": "cuDeviceGetAttribute",
    "current": "cuCtxGetCurrent",
    "retain": "cuDevicePrimaryCtxRetain",
    "push": "cuCtxPushCurrent_v2",
    "pop": "cuCtxPopCurrent_v2",
    "synchronize": "cuCtxSynchronize",
    "pointer_attribute": "cuPointerGetAttribute",
    "alloc": "cuMemAlloc_v2",
    "free": "cuMemFree_v2",
    "to_host": "cuMemcpyDtoH_v2",
    "to_device": "cuMemcpyHtoD_v2",
    "zero": "cuMemsetD8_v2",
    "set_words": "cuMemsetD32Async",
    "error_name": "cuGetErrorName",
}


class Driver:
    """The driver of this process; what touches memory needs its context, by `using`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._calls = {name: getattr(library, symbol) for name, symbol in _CALLS.items()}
        self._contexts: dict[int, int] = {}
        self._do("init", 0)

    def _do(self, name: str, *arguments: Any) -> None:
        status = self._calls[name](*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._calls["error_name"](status, ctypes.byref(text))
            what = text.value.decode(errors="replace") if text.value else f"error {status}"
            raise CaptureError(f"the CUDA driver says {what} to {_CALLS[name]}")

    def devices(self) -> int:
        """How many CUDA devices there are."""
        count = ctypes.c_int()
        self._do("count", ctypes.byref(count))
        return count.value

    @contextmanager
    def using(self, context: int) -> Iterator[None]:
        """Make a context the thread's own for a while; what was before is so again afterwards."""
        self._do("push", ctypes.c_void_p(context))
        try:
            yield
        finally:
            self._do("pop", ctypes.byref(ctypes.c_void_p()))

    def context_of_device(self, device: int | None = None) -> int:
        """The thread's own context if no device is named, else the primary one of the device.

        Frameworks use that.
        """
        context = ctypes.c_void_p()
        if device is None:
            self._do("current", ctypes.byref(context))
            if context.value:
                return context.value
        number = device or 0
        if number not in self._contexts:
            handle = ctypes.c_int()
            self._do("device", ctypes.byref(handle), number)
            self._do("retain", ctypes.byref(context), handle)
            self._contexts[number] = context.value or 0
        return self._contexts[number]

    def context_of(self, pointer: int) -> int:
        """The context that memory belongs to.

        That of its device where it belongs to none (managed memory, pools).
        """
        context = ctypes.c_void_p()
        self._do("pointer_attribute", ctypes.byref(context), _CONTEXT, ctypes.c_uint64(pointer))
        return context.value or self.context_of_device(self.device_of(pointer))

    def attribute(self, which: int, device: int) -> int:
        """An attribute of a device, by its number in `CUdevice_attribute`."""
        value, handle = ctypes.c_int(), ctypes.c_int()
        self._do("device", ctypes.byref(handle), device)
        self._do("attribute", ctypes.byref(value), which, handle)
        return value.value

    def capability(self, device: int) -> tuple[int, int]:
        """The compute capability of a device, e.g. (9, 0)."""
        return self.attribute(_COMPUTE_MAJOR, device), self.attribute(_COMPUTE_MINOR, device)

    def device_of(self, pointer: int) -> int:
        """The device that memory is on."""
        value = ctypes.c_int()
        self._do("pointer_attribute", ctypes.byref(value), _DEVICE_ORDINAL, ctypes.c_uint64(pointer))
        return value.value

    def allocate(self, nbytes: int) -> int:
        """Allocate memory on the device of the current context, all zeros; return its address."""
        pointer = ctypes.c_uint64()
        self._do("alloc", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        self._do("zero", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(nbytes))
        return pointer.value

    def free(self, pointer: int) -> None:
        """Free what `allocate` gave."""
        self._do("free", ctypes.c_uint64(pointer))

    def read(self, pointer: int, nbytes: int) -> bytearray:
        """Copy device memory to the host, once everything that runs in the context is done."""
        self._do("synchronize")
        data = bytearray(nbytes)
        self._do(
            "to_host",
            (ctypes.c_char * nbytes).from_buffer(data),
            ctypes.c_uint64(pointer),
            ctypes.c_size_t(nbytes),
        )
        return data

    def write(self, pointer: int, data: bytes) -> None:
        """Copy bytes of the host to device memory."""
        self._do("to_device", ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data)))

    def set_word(self, pointer: int, value: int, stream: int) -> None:
        """Set four bytes in the order of a stream: after its earlier work, before its later work."""
        self._do(
            "set_words",
            ctypes.c_uint64(pointer),
            ctypes.c_uint(value),
            ctypes.c_size_t(1),
            ctypes.c_void_p(stream),
        )


@cache
def _loaded() -> Driver | str:
    try:
        return Driver(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return "no CUDA driver (libcuda.so.1) on this machine"
    except AttributeError as error:
        return f"the CUDA driver is too old: {error}"
    except CaptureError as error:
        return str(error)


def why_no_device() -> str | None:
    """Say why no kernel can run on a GPU here; None where one can."""
    loaded = _loaded()
    if isinstance(loaded, str):
        return loaded
    try:
        return None if loaded.devices() else "there is no CUDA device"
    except CaptureError as error:
        return str(error)


def driver() -> Driver:
    """Return the driver of this process. CaptureError where there is none or it has no device."""
    loaded = _loaded()
    if isinstance(loaded, str):
        raise CaptureError(f'{loaded}; `device="cpu"` makes a buffer for interpreters and simulators')
    return loaded
