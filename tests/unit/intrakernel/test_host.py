"""The host's side: buffers on the host, tags, what is refused, launches, larger buffers, traces, the reference design's names."""

from __future__ import annotations

import ctypes
import json
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warplens import intrakernel as ik
from warplens.errors import CaptureError, UsageError
from warplens.intrakernel import driver, simulated, traces
from warplens.intrakernel.memory import adopt, handle_of
from warplens.intrakernel.plan import plan_of
from warplens.model import intrakernel_layout as layout
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

no_gpu = pytest.mark.skipif(driver.why_no_device() is None, reason="a device is there")


def kernel(buffer: ik.Buffer, units: list[BufferUnit | None]) -> None:
    """What a kernel would do: claim where that is the mode, and write slices, bounds checked by the slots of the head."""
    head = buffer.read()[: layout.HEADER_BYTES]
    (generation,), (slots,) = struct.unpack_from("<I", head, 32), struct.unpack_from("<I", head, 20)
    fresh = buffer_bytes(units[: buffer.units], slots=slots, generation=generation, mode=buffer.mode)
    view = memoryview(buffer.memory).cast("B")
    for number, unit in enumerate(units[: buffer.units]):
        at = layout.HEADER_BYTES + number * buffer.stride
        if unit is not None:
            view[at : at + buffer.stride] = fresh[at : at + buffer.stride]
    if buffer.mode == "claim":
        claimed = struct.unpack_from("<I", view, layout.CLAIMED_AT)[0] + sum(
            unit is not None for unit in units
        )
        struct.pack_into("<I", view, layout.CLAIMED_AT, claimed)


def regions(count: int, begin: int = 1_000_000) -> list[BufferEvent]:
    return [BufferEvent(1, begin + 10 * i, begin + 10 * i + 5, payload=3) for i in range(count)]


def test_a_buffer_has_the_measure_of_its_launch() -> None:
    buffer = ik.allocate((3, 2, 2), warps=4, slots=10, device="cpu", tags=["load"])
    assert (buffer.units, buffer.warps, buffer.stride, buffer.nbytes) == (48, 4, 64 + 160, 256 + 48 * 224)
    assert buffer.pointer % 4096 == 0
    assert buffer.device is None
    sampled = ik.allocate(10, warps=(0, 4), sample_blocks=4, device="cpu", mode="smem", slots=16)
    assert (sampled.units, sampled.warps, sampled.warp_mask, sampled.stride) == (6, 2, 0b10001, 64 + 128)
    assert ik.allocate(1, warp_mask=0b1110, device="cpu").warps == 3


def test_the_head_says_what_was_asked_for() -> None:
    found = ik.allocate(7, 2, slots=16, mode="smem", clock="clock", sample_blocks=2, device="cpu", keep=99)
    values = {name: int(np.frombuffer(found.memory, kind, 1, at)[0]) for name, kind, at in layout.HEADER}
    asked = {
        "magic": 0x4B494C57, "version": 1, "header_bytes": 256, "mode": 2, "clock": 1, "units": 8, "slots": 16, "stride": 192,
        "warps": 2, "generation": 1, "sample_blocks": 2, "warp_mask": 0, "keep": 99, "claimed": 0, "wanted": 0,
    }  # fmt: skip
    assert {name: values[name] for name in asked} == asked


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"slots": 0}, "slots=0"),
        ({"mode": "ring"}, "slices, claim, smem"),
        ({"mode": "smem", "slots": 10}, "power of two, e.g. 16"),
        ({"clock": "tsc"}, "globaltimer"),
        ({"grid": (4, 0)}, "at least 1"),
        ({"grid": 4.0}, "as a number or as numbers"),
        ({"grid": lambda meta: (4,)}, "as a number or as numbers"),
        ({"warps": (0, 64)}, "0 … 63"),
        ({"warps": 0}, "warps=0"),
        ({"sample_blocks": 0}, "sample_blocks=0"),
        ({"device": "tpu"}, "cuda:N"),
        ({"device": 0}, "cuda:N"),
        ({"library": "jax"}, "torch, cupy, numba"),
        ({"library": "cupy"}, "no memory on the host"),
        ({"memory": bytearray(300)}, "300 bytes"),
        ({"memory": bytes(30000)}, "read-only"),
        ({"memory": np.broadcast_to(np.int64(0), 4096)}, "does not export its memory|not contiguous"),
        ({"memory": object()}, "__cuda_array_interface__"),
        ({"memory": np.zeros((2000, 4), np.int64)[:, ::2]}, "not contiguous"),
        ({"slots": 1 << 30}, "4 GiB"),
        ({"slots": 1 << 20, "grid": 1 << 12}, "32 GiB that kernels reach"),
    ],
)
def test_impossible_buffers_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        ik.allocate(**{"grid": 4, "device": "cpu", **wrong})


def test_a_buffer_and_its_bytes_are_not_mixed_up() -> None:
    buffer = ik.allocate(4, device="cpu")
    for other in (None, buffer.memory, buffer.pointer):
        with pytest.raises(UsageError, match="takes a buffer of warplens"):
            plan_of(other, enabled=False)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a buffer decodes itself"):
        ik.decode(buffer)  # type: ignore[arg-type]


def test_a_decoded_buffer_prints_its_size() -> None:
    buffer = ik.allocate(2, slots=1, device="cpu")
    assert repr(buffer.decode()) == "<0 events of 0 units, nothing recorded>"
    units = [simulated.SimulatedUnit(buffer.pointer, plan_of(buffer), cta, 0) for cta in range(2)]
    units[0].finish()
    units[1].finish()
    assert "no region or mark was recorded" in repr(buffer.decode())
    units[0].record(0, None)
    units[0].record(0, None)
    units[0].finish()
    (line,) = repr(buffer.decode()).splitlines()
    assert line.startswith("<1 event of 2 units, ")
    assert "slots=2 holds all" in line


@no_gpu
def test_without_a_device_a_buffer_on_it_is_refused_with_what_to_do() -> None:
    with pytest.raises(CaptureError, match='device="cpu"'):
        ik.allocate(4)
    with pytest.raises(CaptureError, match='device="cpu"'):
        ik.allocate_profile_buffer(16)


def test_memory_of_others_is_used_where_it_is() -> None:
    array = np.zeros(4096, np.int64)
    buffer = ik.allocate(4, slots=8, memory=array)
    assert buffer.pointer == array.ctypes.data
    assert array[0] & 0xFFFFFFFF == layout.MAGIC
    raw = (ctypes.c_char * 5000)()
    found = adopt(raw, 100) if ctypes.addressof(raw) % 16 == 0 else None
    assert found is None or found.pointer == ctypes.addressof(raw)


class Told:
    """An array that is only known by what it says of itself, as a simulator's is."""

    def __init__(self, array: np.ndarray[Any, Any], **more: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": "<i8",
            "data": (array.ctypes.data, False),
            "version": 3,
            **more,
        }


@no_gpu
def test_memory_is_found_by_the_interface_of_cuda_arrays() -> None:
    array = np.zeros(4096, np.int64)
    assert ik.allocate(4, memory=Told(array)).pointer == array.ctypes.data
    assert adopt(Told(array, strides=(8,)), 8).nbytes == array.nbytes
    with pytest.raises(UsageError, match="not contiguous"):
        adopt(Told(array, strides=(16,)), 8)
    with pytest.raises(UsageError, match="read-only"):
        adopt(Told(array, data=(array.ctypes.data, True)), 8)


def test_streams_of_all_kinds_have_handles() -> None:
    class Torch:
        cuda_stream = 11

    class CuPy:
        ptr = 12

    class Numba:
        handle = ctypes.c_void_p(13)

    class Core:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 14

    assert [handle_of(stream) for stream in (0, 7, Torch(), CuPy(), Numba(), Core(), None)] == [
        0,
        7,
        11,
        12,
        13,
        14,
        0,
    ]
    with pytest.raises(UsageError, match="stream="):
        handle_of("side")


def test_each_launch_is_told_apart_though_nothing_is_cleared() -> None:
    buffer = ik.allocate(2, slots=8, device="cpu", name="b")
    with buffer.launch("first") as first:
        kernel(buffer, [BufferUnit(regions(3)), BufferUnit(regions(2))])
    assert (first.generation, first.name, first.ended >= first.began > 0) == (1, "first", True)
    assert len(buffer.decode().events) == 5
    with buffer.launch() as second:
        kernel(buffer, [None, BufferUnit(regions(1))])
    assert (second.generation, second.name) == (2, "b")
    assert buffer.decode().units["index"].tolist() == [1]
    assert len(buffer.decode().events) == 1
    buffer.generation = 0xFFFFFFFF
    with buffer.launch() as third:
        pass
    assert third.generation == 1
    buffer.close()


@pytest.mark.parametrize("mode", ["slices", "claim"])
def test_launches_are_left_out_by_saying_that_there_is_no_unit(mode: str) -> None:
    buffer = ik.allocate(2, slots=8, device="cpu", mode=mode, sample_launches=3)
    seen = []
    for count in range(1, 8):
        with buffer.launch() as launch:
            (units,) = struct.unpack_from("<I", buffer.memory, layout.UNITS_AT)
            kernel(buffer, [BufferUnit(regions(count))] * units)
        found = buffer.decode()
        seen.append((launch.generation, units, len(found.events), found.units_lost))
    assert seen == [
        (1, 2, 2, 0),
        (0, 0, 2, 0),
        (0, 0, 2, 0),
        (2, 2, 8, 0),
        (0, 0, 8, 0),
        (0, 0, 8, 0),
        (3, 2, 14, 0),
    ]


def test_slices_are_claimed_anew_in_each_launch() -> None:
    buffer = ik.allocate(2, slots=8, device="cpu", mode="claim")
    for _ in range(3):
        with buffer.launch():
            kernel(buffer, [BufferUnit(regions(1)), BufferUnit(regions(1)), BufferUnit(regions(1))])
        found = buffer.decode()
        assert (len(found.units), found.units_lost) == (2, 1)


def test_a_buffer_grows_until_everything_fits() -> None:
    calls: list[int] = []

    def launched(buffer: ik.Buffer) -> None:
        calls.append(buffer.slots)
        kernel(buffer, [BufferUnit(regions(20)), BufferUnit(regions(3)), BufferUnit(regions(1))])

    buffer = ik.allocate(2, slots=4, device="cpu", mode="claim", tags=["a", "b"])
    found = buffer.run(launched)
    assert calls == [4, 20]
    assert (len(found.events), found.dropped, found.units_lost, buffer.units) == (24, 0, 0, 3)
    kept = ik.allocate(2, slots=4, device="cpu", tags=["a", "b"]).run(
        lambda buffer: kernel(buffer, [BufferUnit(regions(20))]), auto_resize=False
    )
    assert (len(kept.events), kept.dropped, kept.needed_slots) == (4, 16, 20)


def test_tags() -> None:
    tags = ik.TagTable(["load", "compute"])
    assert (tags.id("compute"), tags.id(7), tags.name(0), tags.label(9), len(tags), tags.names) == (
        1,
        7,
        "load",
        "tag 9",
        2,
        ["load", "compute"],
    )
    assert (tags.add("store"), tags.add("load"), list(tags), "store" in tags) == (
        2,
        0,
        ["load", "compute", "store"],
        True,
    )
    with pytest.raises(KeyError, match="load, compute, store"):
        tags.id("wait")
    with pytest.raises(KeyError):
        tags.id(0xFFFF)
    with pytest.raises(IndexError):
        tags.name(3)
    with pytest.raises(UsageError, match="twice"):
        ik.TagTable(["a", "a"])
    with pytest.raises(UsageError, match="name"):
        ik.TagTable([""])


def nested(events: list[dict[str, Any]]) -> bool:
    """Whether the slices of each thread lie within or beside each other."""
    threads: dict[Any, list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
    return all(
        b[0] >= a[1] or (b[0] >= a[0] and b[1] <= a[1])
        for spans in threads.values()
        for i, a in enumerate(sorted(spans))
        for b in sorted(spans)[i + 1 :]
        if b != a
    )


def test_a_trace_has_a_row_for_each_warp_and_lanes_where_regions_cross(tmp_path: Path) -> None:
    crossing = [
        BufferEvent(0, 1_000_000, 1_000_300),
        BufferEvent(1, 1_000_200, 1_000_500),
        BufferEvent(2, 1_000_400, 1_000_400, payload=7, flags=1),
    ]
    buffer = ik.allocate(2, slots=8, device="cpu", tags=["load", "compute"])
    with buffer.launch():
        kernel(
            buffer, [BufferUnit(crossing, cta=1, warp=0, sm=5), BufferUnit(crossing[:1], cta=0, warp=3, sm=4)]
        )
    path = tmp_path / "trace.json"
    written = ik.write_trace(buffer.decode(), buffer.tags, path, name="gemm")
    assert json.loads(path.read_text()) == written
    events = written["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert names == ["CTA 0 warp 3 (SM 4)", "CTA 1 warp 0 (SM 5)", "CTA 1 warp 0 (SM 5) (2)"]
    assert [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"] == [
        ("load", 0, 0.3),
        ("load", 0, 0.3),
        ("compute", 0.2, 0.3),
    ]
    (mark,) = (event for event in events if event["ph"] == "i")
    assert (mark["name"], mark["ts"], mark["args"]["payload"]) == ("tag 2", 0.4, 7)
    assert nested(events)


def test_lanes_nest_whatever_crosses() -> None:
    spans = [(0, 10), (2, 5), (4, 12), (5, 9), (9, 10), (11, 15), (0, 10), (12, 12)]
    given = [traces.Slice(0, str(i), start, end - start, {}) for i, (start, end) in enumerate(spans)]
    placed = list(traces.lanes_of(given))
    assert sorted(one.name for one, _ in placed) == [str(i) for i in range(len(spans))]
    assert nested(
        [{"ph": "X", "pid": 0, "tid": lane, "ts": one.start, "dur": one.length} for one, lane in placed]
    )


def test_the_reference_designs_session_records_writes_and_warns(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ik.profile_session(16, ["a", "b"], str(path), device="cpu") as (prof, tags):
            assert (tags.id("b"), prof.max_events) == (1, 16)
            assert memoryview(prof.tensor).format == "q"
            kernel(
                prof.buffer,
                [BufferUnit(regions(2), cta=4), BufferUnit([BufferEvent(0, 1_000_004, 1_000_020)], cta=9)],
            )
    assert [(e.start_ns, e.dur_ns, e.tag_id, e.tag_name, e.tid) for e in prof.events] == [
        (1_000_000, 5, 1, "b", 3),
        (1_000_004, 16, 0, "a", 9),
        (1_000_010, 5, 1, "b", 3),
    ]
    assert len([e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]) == 3
    with (
        pytest.warns(UserWarning, match="max_events is 4"),
        ik.profile_session(4, ["a"], device="cpu") as (prof, tags),
    ):
        kernel(prof.buffer, [BufferUnit(regions(3)), BufferUnit(regions(3))])
    assert (len(prof.events), prof.overflow) == (4, 2)
    assert prof.events[0].tag_name == "unknown_1"
    prof.reset()
    assert ik.decode_events(prof, tags) == ([], 0)


def test_events_are_decoded_from_tensors_of_both_layouts() -> None:
    tags = ik.TagTable(["a", "b"])
    prof = ik.allocate_profile_buffer(8, "cpu")
    kernel(prof.buffer, [BufferUnit(regions(2))])
    ours, overflow = ik.decode_events(prof.tensor, tags, tid_base=100)
    assert ([e.tid for e in ours], overflow) == ([103, 103], 0)
    theirs, overflow = ik.decode_events(np.array([5, 1000, 50, 0, 4, 900, 20, 1, 4], np.int64), tags)
    assert [(e.start_ns, e.tag_name, e.tid) for e in theirs] == [(900, "b", 4), (1000, "a", 4)]
    assert overflow == 3
    assert ik.events_to_perfetto([]) == {
        "traceEvents": [{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "GPU 0"}}],
        "displayTimeUnit": "ns",
    }


@pytest.mark.parametrize("max_events", [1, 256, 5000, 1 << 20])
def test_a_buffer_for_any_number_of_events_keeps_within_bounds(max_events: int) -> None:
    assert ik.allocate_profile_buffer(max_events, "cpu").buffer.nbytes <= (64 << 20) + 4096
