"""Memory that kernels record into.

Of torch, CuPy, Numba, the CUDA driver or the host, by the interface that it has.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from importlib import import_module
from typing import Any

from warplens.errors import UsageError
from warplens.intrakernel import driver
from warplens.intrakernel.dlpack import address_in_dlpack

LIBRARIES = ("torch", "cupy", "numba", "cuda", "host")


class Memory:
    """Bytes at an address, and the object that keeps them alive.

    Subclasses know how to access them.

    Attributes:
        array: the framework's own array (torch: int64), which is what its kernels take.
        pointer: the address.
        nbytes: how many bytes there are.
        device: number of the CUDA device; None: memory of the host.
    """

    device: int | None = None
    kept: Any = None  # what the memory is there as long as

    def __init__(self, array: Any, pointer: int, nbytes: int) -> None:
        self.array = array
        self.pointer = pointer
        self.nbytes = nbytes

    def read(self) -> bytearray:
        """Copy everything to the host, once the device is done with what it was given."""
        return bytearray((ctypes.c_char * self.nbytes).from_address(self.pointer))

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes at once."""
        ctypes.memmove(self.pointer + offset, data, len(data))

    def set_word(self, offset: int, value: int, stream: Any) -> None:
        """Write a number of four bytes in the order of the stream: after its earlier work."""
        del stream  # the host's memory knows only one order
        self.write(offset, value.to_bytes(4, "little"))


class DeviceMemory(Memory):
    """Memory of a CUDA device, reached by the driver, whatever library it is of."""

    def __init__(self, array: Any, pointer: int, nbytes: int, *, owned: bool = False) -> None:
        super().__init__(array, pointer, nbytes)
        self._driver = driver.driver()
        self._context = self._driver.context_of(pointer)
        self._owned = owned
        self.device = self._driver.device_of(pointer)

    def read(self) -> bytearray:
        """Copy everything to the host, once the device is done with what it was given."""
        with self._driver.using(self._context):
            return self._driver.read(self.pointer, self.nbytes)

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes at once."""
        with self._driver.using(self._context):
            self._driver.write(self.pointer + offset, data)

    def set_word(self, offset: int, value: int, stream: Any) -> None:
        """Write a number of four bytes in the order of the stream: after its earlier work."""
        with self._driver.using(self._context):
            self._driver.set_word(self.pointer + offset, value, handle_of(stream, self.array))

    def __del__(self) -> None:
        if getattr(self, "_owned", False):
            try:
                with self._driver.using(self._context):
                    self._driver.free(self.pointer)
            except Exception:  # the process is ending, or its context is gone: so is the memory
                pass


def handle_of(stream: Any, array: Any = None) -> int:
    """Return the driver's handle of a stream: a number, any framework's stream.

    None is the current one of the array's framework.
    """
    if stream is None:
        stream = _current_stream(array)
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        described = protocol() if callable(protocol) else protocol
        return int(described[1])
    for name in ("cuda_stream", "ptr", "handle", "value"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise UsageError(
            f"stream={stream!r} is neither a stream of torch, CuPy, Numba or cuda-python nor a handle"
        ) from None


def _current_stream(array: Any) -> Any:
    library = type(array).__module__.partition(".")[0]
    if library == "torch":
        return sys.modules["torch"].cuda.current_stream(array.device)
    if library == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream()
    return 0


def adopt(array: Any, least: int) -> Memory:
    """Use existing memory. Of torch, CuPy, Numba, cuda-python, NumPy, or a writable buffer.

    It is found by `__cuda_array_interface__`, DLPack or the buffer protocol. UsageError if it has none of them, is
    smaller than `least` bytes, read-only (as JAX's arrays are), or not in one piece.
    """
    kind = f"{type(array).__module__}.{type(array).__name__}"
    if kind.startswith(("jax.", "jaxlib.")):  # says nothing of it: neither of its protocols does
        raise UsageError("JAX shares the memory of its arrays, which must not be written: leave `memory` out")
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        memory = _from_interface(array, interface, kind)
    elif hasattr(array, "__dlpack__") and not isinstance(array, bytearray | memoryview):
        pointer, nbytes, on_host, capsule = address_in_dlpack(array, kind)
        memory = (HostMemory if on_host else DeviceMemory)(array, pointer, nbytes)
        memory.kept = capsule
    else:
        memory = _from_buffer(array, kind)
    if memory.nbytes < least:
        raise UsageError(f"the memory has {memory.nbytes} bytes, and the buffer needs {least}")
    if memory.pointer % 16:
        raise UsageError(
            "the memory does not start at a multiple of 16 bytes, which the kernel's 16-byte stores need"
        )
    return memory


class HostMemory(Memory):
    """Memory of the host, for interpreters and simulators."""


def _from_interface(array: Any, interface: dict[str, Any], kind: str) -> Memory:
    pointer, read_only = interface["data"]
    if read_only:
        raise UsageError(f"the memory of this {kind} is read-only, and kernels write into it")
    size = int(interface["typestr"][2:])
    strides = interface.get("strides")
    expected = size
    for length, step in zip(reversed(interface["shape"]), reversed(strides or ()), strict=False):
        if length > 1 and step != expected:
            raise UsageError(f"the memory of this {kind} is not contiguous")
        expected *= length
    count = 1
    for length in interface["shape"]:
        count *= length
    if pointer and driver.why_no_device() is not None:  # a simulator's array
        return HostMemory(array, int(pointer), count * size)
    return DeviceMemory(array, int(pointer), count * size)


def _from_buffer(array: Any, kind: str) -> Memory:
    try:
        view = memoryview(array)
    except TypeError:
        raise UsageError(
            f"a {kind} does not export its memory: it has no __cuda_array_interface__, DLPack or buffer"
        ) from None
    if view.readonly or not view.c_contiguous:
        raise UsageError(
            f"the memory of this {kind} is {'read-only' if view.readonly else 'not in one piece'}"
        )
    view_kept = (ctypes.c_char * view.nbytes).from_buffer(view)
    memory = HostMemory(array, ctypes.addressof(view_kept), view.nbytes)
    memory.kept = view_kept
    return memory


def allocate_memory(nbytes: int, device: str, library: str = "") -> Memory:
    """Allocate zeros on `cpu`, `cuda` or `cuda:1`, by a library of `LIBRARIES`.

    If none is named by the one that is imported.

    Raises:
        UsageError: the device or the library is none of these, or the library is not installed.
        CaptureError: there is no CUDA driver or device.
    """
    place, _, number = str(device).partition(":")  # a torch.device says its name so
    if place not in ("cpu", "cuda") or (number and not number.isdigit()) or (place == "cpu" and number):
        raise UsageError(f"no device {device!r}: there are `cuda`, `cuda:N` and `cpu`")
    if library and library not in LIBRARIES:
        raise UsageError(f"no library {library!r} to allocate with; there are {', '.join(LIBRARIES)}")
    size = -(-nbytes // 8)
    if place == "cpu":
        if library == "torch":
            return adopt(_module("torch").zeros(size, dtype=_module("torch").int64), nbytes)
        if library not in ("", "host"):
            raise UsageError(f"{library} has no memory on the host: leave `library` out")
        return adopt(memoryview(mmap.mmap(-1, size * 8)), nbytes)  # mapped memory begins where a page does
    if library == "host":
        raise UsageError('library="host" is for device="cpu"')
    driver.driver()
    ordinal = int(number) if number else None
    return _on_device(
        size, ordinal, library or next((name for name in ("torch", "cupy") if name in sys.modules), "cuda")
    )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(
            f"{name} is not installed; leave `library` out: the CUDA driver's own memory needs none"
        ) from None


def _on_device(size: int, ordinal: int | None, library: str) -> Memory:
    if library == "torch":
        torch = _module("torch")
        place = "cuda" if ordinal is None else f"cuda:{ordinal}"
        array = torch.zeros(size, dtype=torch.int64, device=place)
        torch.cuda.current_stream(array.device).synchronize()  # the head is written by another stream
        return DeviceMemory(array, int(array.data_ptr()), size * 8)
    if library == "cupy":
        cupy = _module("cupy")
        with cupy.cuda.Device(ordinal) if ordinal is not None else cupy.cuda.Device():
            zeros = cupy.zeros(size, dtype="int64")
            cupy.cuda.get_current_stream().synchronize()
        return DeviceMemory(zeros, int(zeros.data.ptr), size * 8)
    if library == "numba":
        _module("numba.cuda")
        cuda = import_module("numba.cuda")
        with cuda.gpus[ordinal or 0]:
            array = cuda.device_array(size, dtype="int64")
            array[:] = 0
            cuda.synchronize()
        return adopt(array, size * 8)
    calls = driver.driver()
    with calls.using(calls.context_of_device(ordinal)):
        pointer = calls.allocate(size * 8)
    return DeviceMemory(Address(pointer, size), pointer, size * 8, owned=True)


class Address(int):
    """Memory of the driver: its address, and the interface that array libraries read."""

    size: int

    def __new__(cls, pointer: int, size: int) -> Address:
        """Make one of `size` int64 words."""
        made = super().__new__(cls, pointer)
        made.size = size
        return made

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.size,),
            "typestr": "<i8",
            "data": (int(self), False),
            "version": 3,
            "strides": None,
        }
