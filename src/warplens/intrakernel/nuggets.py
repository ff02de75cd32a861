"""The reference design's names (transformer_nuggets' profiler for CuTe DSL).

Its users only change an import.

Host functions are here, device functions in `warplens.intrakernel.device.nuggets`. `prof.tensor` is an int64 array, as it
was, with our layout inside: each warp that records claims a slice when it begins, and no event costs an atomic. Of all that is
recorded the first `max_events` are kept.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from warplens.errors import UsageError
from warplens.intrakernel.buffers import Buffer, allocate
from warplens.intrakernel.memory import adopt
from warplens.intrakernel.reading import decode
from warplens.intrakernel.tags import TagTable
from warplens.intrakernel.traces import Slice, chrome_events, write_json
from warplens.model import intrakernel_layout as layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from warplens.spool.kernels.decoded import Decoded

_HOST = (
    "Event",
    "ProfileBuf",
    "TagTable",
    "allocate_profile_buffer",
    "decode_events",
    "events_to_perfetto",
    "profile_session",
)
DEVICE = (
    "profile_region",
    "lane0_warp0_start",
    "lane0_warp0_stop",
    "warp_start",
    "warp_stop",
    "elected_start",
    "elected_stop",
    "profile_start",
    "profile_stop",
    "read_globaltimer",
)
__all__ = [*_HOST, *DEVICE]

_ROOM = 64 << 20  # bytes of a buffer up to which every warp may record every event


def __getattr__(name: str) -> Any:
    if name in DEVICE:
        from importlib import import_module

        return getattr(import_module("warplens.intrakernel.device.nuggets"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass
class Event:
    """A region: begin and length in ns, tag (number and name), thread number, and recorder."""

    start_ns: int
    dur_ns: int
    tag_id: int
    tag_name: str
    tid: int
    unit_id: int = 0


@dataclass
class ProfileBuf:
    """A buffer of `max_events` events: `tensor` (int64) and `max_events` are what a kernel takes.

    After a `profile_session`, `events` and `overflow` say what was recorded in it.
    """

    buffer: Buffer
    max_events: int
    events: list[Event] = field(default_factory=list)
    overflow: int = 0

    @property
    def tensor(self) -> Any:
        """The buffer as an int64 array: of torch or CuPy where they are used, on the host a memoryview."""
        memory = self.buffer.memory
        return memory.cast("q") if isinstance(memory, memoryview) else memory

    def to_cute(self) -> Any:
        """The buffer as a tensor of CuTe DSL. ImportError where cutlass is not installed."""
        from importlib import import_module

        return import_module("cutlass.cute.runtime").from_dlpack(self.tensor)

    def reset(self) -> None:
        """Forget what was recorded."""
        self.buffer.clear()


def allocate_profile_buffer(
    max_events: int, device: Any = None, stream: Any = None, *, units: int = 0, slots: int = 0
) -> ProfileBuf:
    """Allocate a buffer for `max_events` events of all warps together.

    Args:
        max_events: how many events are wanted; the first ones are kept.
        device: `cuda` (default), `cuda:1`, `cpu`, or torch's object for one.
        stream: not needed; the buffer is ready when this returns.
        units: how many warps may record, and
        slots: how many events each of them: as many as can be needed, in up to 64 MiB.

    Raises:
        UsageError: `max_events` is not positive, or there is no such device.
        CaptureError: there is no CUDA device.
    """
    del stream
    if max_events < 1:
        raise UsageError(f"max_events={max_events}: at least one event")
    place = str(device) if device is not None else "cuda"
    library = "torch" if "torch" in sys.modules else ""
    slots = slots or (
        max_events
        if max_events * (max_events * layout.RECORD_BYTES + layout.UNIT_HEADER_BYTES) <= _ROOM
        else min(max_events, 1024)
    )
    units = units or min(
        max_events, max(1, _ROOM // (slots * layout.RECORD_BYTES + layout.UNIT_HEADER_BYTES))
    )
    buffer = allocate(
        units=units,
        slots=slots,
        mode="claim",
        keep=max_events,
        device=place,
        library=library,
        name="profile buffer",
    )
    return ProfileBuf(buffer, max_events)


def _decoded(source: Any) -> tuple[Decoded, int]:
    """Decode a `ProfileBuf`, a `Buffer`, or an array or bytes in our layout or the reference's.

    And how many events are wanted.
    """
    if isinstance(source, ProfileBuf):
        return source.buffer.decode(), source.max_events
    if isinstance(source, Buffer):
        return source.decode(), source.shape.keep
    data = (
        bytes(source)
        if isinstance(source, bytes | bytearray | memoryview)
        else bytes(adopt(source, 8).read())
    )
    ours = data[:4] == layout.MAGIC.to_bytes(4, "little")
    decoded = decode(data) if ours else decode(data, layout="nuggets")
    return decoded, 0


def decode_events(
    buf: Any, tag_table: TagTable, pid: int = 0, tid_base: int = 0, drop_overflow: bool = True
) -> tuple[list[Event], int]:
    """Decode a buffer into events and the number of those that were lost.

    Args:
        buf: what `allocate_profile_buffer` returned, its tensor, or a tensor in the reference's layout.
        tag_table: names of the tags; a number without a name is called `unknown_7`.
        pid: taken for compatibility; `events_to_perfetto` has its own.
        tid_base: added to the thread numbers.
        drop_overflow: taken for compatibility: what was lost is not in the buffer.

    Raises:
        SpoolError: this is no such buffer.
    """
    del pid, drop_overflow
    decoded, _ = _decoded(buf)
    names = {
        tag: tag_table.name(tag) if tag < len(tag_table) else f"unknown_{tag}"
        for tag in set(decoded.events["tag"].tolist())
    }
    numbered = decoded.units["cta"].tolist()
    columns = (
        decoded.events[column].tolist() for column in ("unit", "tag", "flags", "start", "end", "payload")
    )
    events = [
        Event(
            start,
            end - start,
            tag,
            names[tag],
            tid_base + (payload if flags & layout.HAS_PAYLOAD else numbered[unit]),
            unit,
        )
        for unit, tag, flags, start, end, payload in zip(*columns, strict=True)
    ]
    events.sort(key=lambda event: event.start_ns)
    return events, decoded.dropped + decoded.surplus + decoded.units_lost


def events_to_perfetto(
    events: Any,
    trace_path: str | PathLike[str] | None = None,
    pid: int = 0,
    tid_prefix: int | None = None,
    unit_name: str = "Block",
) -> dict[str, Any]:
    """Write events as Chrome JSON for ui.perfetto.dev, times from the first one.

    Return what is written.

    Regions of a thread that overlap without being nested are split into lanes.

    Args:
        events: of `decode_events`.
        trace_path: of the file; None writes none.
        pid: process number in the trace, e.g. the rank.
        tid_prefix: added to the numbers of the rows.
        unit_name: what a thread number counts.
    """
    rows: dict[Any, list[Slice]] = {}
    for event in events:
        arguments = {"tag_id": event.tag_id, "start_ns": event.start_ns, "dur_ns": event.dur_ns}
        rows.setdefault(event.tid, []).append(
            Slice(event.tid, event.tag_name, event.start_ns, event.dur_ns, arguments)
        )
    names = {tid: f"{unit_name} {tid}" for tid in sorted(rows)}
    return write_json(
        chrome_events(rows, names, pid=pid, process=f"GPU {pid}", first_tid=tid_prefix or 0), trace_path
    )


@contextmanager
def profile_session(
    max_events: int,
    tag_names: Iterable[str] = (),
    trace_path: str | PathLike[str] | None = None,
    device: Any = None,
    stream: Any = None,
    pid: int = 0,
) -> Iterator[tuple[ProfileBuf, TagTable]]:
    """Record one launch, with a trace of it where a path is given.

        with profile_session(256, ["load", "compute"], "trace.json") as (prof, tags):
            kernel(…, prof.tensor, prof.max_events)

    Needs no launcher and no CUPTI. Afterwards `prof.events` and `prof.overflow` say what was recorded; lost events are warned about.

    Args:
        max_events: how many events are wanted.
        tag_names: names of the regions.
        trace_path: file for Chrome JSON; None: none is written.
        device: `cuda` (default), `cuda:1` or `cpu`.
        stream: the stream of the launch.
        pid: process number in the trace.
    """
    tags = TagTable(tag_names)
    prof = allocate_profile_buffer(max_events, device, stream)
    prof.buffer.tags = tags
    with prof.buffer.launch("profile_session", stream=stream):
        yield prof, tags
    prof.events, prof.overflow = decode_events(prof, tags, pid)
    if prof.overflow:
        decoded = prof.buffer.decode()
        warnings.warn(
            f"{prof.overflow} events did not fit: {'; '.join(decoded.losses())}; max_events is {max_events}",
            stacklevel=3,
        )
    if trace_path is not None:
        events_to_perfetto(prof.events, trace_path, pid)
