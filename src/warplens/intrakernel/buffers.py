"""Buffers that kernels record into.

Sized for a launch, registered with the agent, read back, made larger where needed.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import index

from warplens.errors import UsageError
from warplens.intrakernel import driver, recording
from warplens.intrakernel.layout import Shape
from warplens.intrakernel.memory import Memory, adopt, allocate_memory, handle_of
from warplens.intrakernel.reading import decode
from warplens.intrakernel.tags import TagTable
from warplens.model import intrakernel_layout as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warplens.spool.kernels.decoded import Decoded

_LARGEST = 1 << 32  # bytes that a rerun may grow a buffer to


@dataclass
class Launch:
    """One launch: its generation, its name, and when the host began and ended its block.

    In ns, CLOCK_REALTIME.

    Generation 0: `sample_launches` left it out, and nothing is recorded.
    """

    generation: int
    name: str
    began: int
    ended: int = 0


class Buffer:
    """What one launch records into. `allocate` makes one.

    Attributes:
        shape: how it is divided (`units`, `slots`, … are there as attributes, too).
        tags: the names that the kernel uses.
        memory: the framework's array, as kernels take it: torch int64, CuPy, Numba, an address, or a memoryview on the host.
        pointer, nbytes: where it is and how long.
        generation: of the last launch; a kernel writes it into its records, so a buffer is never cleared.
        last: the last `launch`, None before the first.
    """

    def __init__(
        self, shape: Shape, memory: Memory, tags: TagTable, name: str = "", sample_launches: int = 1
    ) -> None:
        self.shape = shape
        self.sample_launches = sample_launches
        self._launches = 0
        self._closed = False  # the head says that there is no unit: how a launch is left out
        self.tags = tags
        self.name = name
        self.generation = 1
        self.last: Launch | None = None
        self._place = memory
        self._place.write(0, shape.header(1))
        self._number = self._register()

    memory = property(lambda self: self._place.array, doc="The framework's own array.")
    pointer = property(lambda self: self._place.pointer, doc="The address.")
    nbytes = property(lambda self: self.shape.nbytes, doc="Bytes of the buffer.")
    device = property(
        lambda self: self._place.device, doc="Number of the CUDA device; None: memory of the host."
    )
    units = property(lambda self: self.shape.units, doc="How many units have a slice.")
    slots = property(lambda self: self.shape.slots, doc="Records that fit into a slice.")
    stride = property(lambda self: self.shape.stride, doc="Bytes from slice to slice.")
    warps = property(lambda self: self.shape.warps, doc="Warps of a CTA that record.")
    mode = property(lambda self: self.shape.mode, doc="`slices`, `claim` or `smem`.")
    clock = property(lambda self: self.shape.clock, doc="`globaltimer` or `clock`.")
    sample_blocks = property(lambda self: self.shape.sample_blocks, doc="Every how many-th CTA records.")
    warp_mask = property(
        lambda self: self.shape.warp_mask, doc="Which warps of a CTA record; 0: the first ones."
    )

    @contextmanager
    def launch(self, name: str = "", *, stream: Any = None) -> Iterator[Launch]:
        """Launch one kernel in this block: `with buffer.launch("gemm"): kernel[grid](…, buffer.memory)`.

        What an earlier launch recorded is replaced. The head is written in the order of the stream, so launches
        that are still running are left alone.

        Args:
            name: what the launch is called where no kernel record names it.
            stream: the stream that the kernel goes to, of any framework or a handle; None: the current one of the
                framework that the memory is of, else the default stream.
        """
        self._launches += 1
        if (self._launches - 1) % self.sample_launches:
            self._close(stream)
            yield Launch(0, name or self.name, time.clock_gettime_ns(time.CLOCK_REALTIME))
            return
        if self._closed:
            self._place.set_word(layout.UNITS_AT, self.units, stream)
            self._closed = False
        if self.last is not None:
            recording.store(self._number, self.tags)
            self.generation = self.generation % 0xFFFFFFFF + 1
            self._place.set_word(layout.GENERATION_AT, self.generation, stream)
        if (
            self.mode == "claim"
        ):  # before the first launch, too: if that is captured, each replay of the graph begins again
            self._place.set_word(layout.CLAIMED_AT, 0, stream)
        self.last = launch_record = Launch(
            self.generation, name or self.name, time.clock_gettime_ns(time.CLOCK_REALTIME)
        )
        recording.launched(self._number, launch_record.generation, launch_record.name, self._stream(stream))
        yield launch_record
        launch_record.ended = time.clock_gettime_ns(time.CLOCK_REALTIME)
        if self.device is None:  # a kernel that writes into host memory is done
            recording.store(self._number, self.tags)

    def _close(self, stream: Any) -> None:
        if not self._closed:
            recording.store(self._number, self.tags)
            self._place.set_word(layout.UNITS_AT, 0, stream)
            self._closed = True

    def _register(self) -> int:
        number = recording.register(
            self.pointer, self.nbytes, on_device=self.device is not None, name=self.name
        )
        # At the latest when the buffer goes, or the process ends: the memory is there until then.
        self._forget = weakref.finalize(self, recording.unregister, number, self.tags)
        return number

    def _stream(self, stream: Any) -> int:
        return 0 if self.device is None else handle_of(stream, self.memory)

    def clear(self) -> None:
        """Forget what was recorded; for launches that are not in a `launch` block."""
        self._place.write(layout.HEADER_BYTES, bytes(self.nbytes - layout.HEADER_BYTES))
        self._place.write(0, self.shape.header(self.generation))

    def read(self) -> bytes:
        """Copy the buffer to the host; waits until the device is done."""
        data = self._place.read()
        if self._closed:  # as the last launch that was recorded left it
            claimed = int.from_bytes(data[layout.CLAIMED_AT : layout.CLAIMED_AT + 4], "little")
            data[layout.UNITS_AT : layout.UNITS_AT + 4] = self.units.to_bytes(4, "little")
            data[layout.CLAIMED_AT : layout.CLAIMED_AT + 4] = min(claimed, self.units).to_bytes(4, "little")
        return bytes(data)

    def decode(self) -> Decoded:
        """Read and decode what the last launch recorded; see `warplens.spool.intrakernel.Decoded`.

        Needs NumPy.
        """
        return decode(self.read(), generation=self.generation)

    @property
    def needed_slots(self) -> int:
        """The slots that would have kept every record of the last launch."""
        return self.decode().needed_slots

    def resize(self, slots: int | None = None, units: int | None = None) -> None:
        """Take new memory of the same kind for other numbers of slots or units.

        What was recorded is gone.
        """
        shape = replace(self.shape, slots=slots or self.slots, units=units or self.units)
        library = type(self.memory).__module__.partition(".")[0]
        place = "cpu" if self.device is None else f"cuda:{self.device}"
        memory = allocate_memory(
            shape.nbytes, place, library if library in ("torch", "cupy", "numba") else ""
        )
        self._forget()
        self.shape, self._place, self.generation, self.last, self._closed = shape, memory, 1, None, False
        self._place.write(0, shape.header(1))
        self._number = self._register()

    def run(self, kernel: Callable[[Buffer], object], *, name: str = "", auto_resize: bool = True) -> Decoded:
        """Launch `kernel(buffer)` and decode.

        Once more in a larger buffer where records did not fit.

        Args:
            kernel: launches one kernel that records into the buffer it is given. Whatever it changes is changed twice by a rerun.
            name: of the launch.
            auto_resize: launch again where records or units were lost; False: keep what fits.
        """
        for _ in range(3):
            self._launches = 0
            with self.launch(name):
                kernel(self)
            decoded = self.decode()
            if not auto_resize or not (decoded.dropped or decoded.units_lost) or self.mode == "smem":
                break
            wanted = replace(self.shape, slots=decoded.needed_slots, units=self.units + decoded.units_lost)
            if wanted.nbytes > _LARGEST:
                break
            self.resize(wanted.slots, wanted.units)
        return decoded

    def close(self) -> None:
        """Let the agent store what is in the buffer, and forget it.

        The memory goes with its last user.
        """
        self._forget()
        self._number = 0

    def __repr__(self) -> str:
        return f"<Buffer {self.mode}: {self.units} units of {self.slots} slots, {self.nbytes} bytes at {self.pointer:#x}>"


def _count(grid: int | Sequence[int]) -> int:
    total = 1
    try:
        lengths = [index(grid)] if hasattr(grid, "__index__") else [index(length) for length in grid]
    except TypeError:
        raise UsageError(
            f"grid={grid!r}: the CTAs of the launch, as a number or as numbers: 64 or (64, 8)"
        ) from None
    for length in lengths:
        if length < 1:
            raise UsageError(f"grid={grid!r}: every length is at least 1")
        total *= length
    return total


def clock_for(device: int | None) -> str:
    """The clock of `auto`: ns if they are fine enough (Hopper and later, the host), else cycles."""
    if device is None:
        return "globaltimer"
    return "globaltimer" if driver.driver().capability(device) >= (9, 0) else "clock"


def allocate(
    grid: int | Sequence[int] = 1,
    warps: int | Sequence[int] = 1,
    *,
    slots: int = 256,
    tags: TagTable | Iterable[str] = (),
    mode: str = "slices",
    clock: str = "auto",
    device: str = "cuda",
    library: str = "",
    memory: Any = None,
    units: int | None = None,
    sample_blocks: int = 1,
    sample_launches: int = 1,
    warp_mask: int = 0,
    keep: int = 0,
    name: str = "",
) -> Buffer:
    """Make a buffer for launches of `grid` CTAs of which `warps` warps each record.

    Args:
        grid: CTAs of the launch, as one number or as it is launched: `(64, 8)`.
        warps: how many warps of a CTA record, the first ones; or which ones: `(0, 4)`.
        slots: records that each warp may write; what comes later is counted, not kept (`smem`: what came first).
        tags: the names of the regions, a `TagTable` or names for one.
        mode: `slices` (each warp has its place), `claim` (each warp claims one when it begins: persistent kernels,
            CUDA graphs) or `smem` (a ring in shared memory, written out at the end).
        clock: `globaltimer` (ns), `clock` (cycles) or `auto`: ns on Hopper and later, else cycles.
        device: `cuda`, `cuda:N`, or `cpu` for interpreters and simulators.
        library: the allocator: `torch`, `cupy`, `numba`, `cuda` (the driver itself) or `host`; default: the framework that is
            imported already, else the driver.
        memory: use this instead: any array or buffer of at least `Shape.nbytes` bytes.
        units: how many units there are, if that is not CTAs x warps (mode `claim`).
        sample_blocks: record only CTAs whose number is a multiple of it.
        sample_launches: record only every `sample_launches`-th `launch`, the first one included.
        warp_mask: which warps record, as bits; what `warps=(0, 4)` sets.
        keep: how many events are wanted of all, those that began first; 0: all.
        name: of the buffer, for reports.

    Raises:
        UsageError: a value is out of its range, or the memory does not fit.
        CaptureError: there is no CUDA device.
    """
    if not isinstance(warps, int):
        chosen = sorted(set(warps))
        if not chosen or chosen[0] < 0 or chosen[-1] > 63:
            raise UsageError(f"warps={warps!r}: numbers of warps of a CTA, 0 … 63")
        warps, warp_mask = len(chosen), sum(1 << warp for warp in chosen)
    elif warps < 1:
        raise UsageError(
            f"warps={warps}: at least one warp of a CTA records; `bind(buffer, enabled=False)` records nothing"
        )
    elif warp_mask:
        warps = bin(warp_mask).count("1")
    total = units or -(-_count(grid) // max(1, sample_blocks)) * warps
    shape = Shape(
        total, slots, warps, mode, "globaltimer" if clock == "auto" else clock, sample_blocks, warp_mask, keep
    )
    place = (
        adopt(memory, shape.nbytes) if memory is not None else allocate_memory(shape.nbytes, device, library)
    )
    if clock == "auto":
        shape = replace(shape, clock=clock_for(place.device))
    return Buffer(
        shape, place, tags if isinstance(tags, TagTable) else TagTable(tags), name, max(1, sample_launches)
    )
