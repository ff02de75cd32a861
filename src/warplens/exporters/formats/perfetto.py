"""Perfetto protobuf trace (TrackEvent), for ui.perfetto.dev and trace_processor.

## What maps to what
- Processes and threads: process and thread tracks, including command lines and names.
- Push/pop ranges: slices on their thread's track. Ranges that cross another domain's ranges: on a
  second track of the thread.
- Start/end ranges: slices on tracks of their process; overlapping ranges get one track each.
- Tasks (asyncio, trio, generators): tracks below the thread that first ran them, with their ranges
  and marks.
- Marks: instants on their thread's or task's track.
- Counters: counter tracks of their process, with unit and description; `delta` counters are
  incremental.
- CUDA API calls: a track `CUDA API` below their thread. An arrow (flow) leads from a call to the
  first operation that it started.
- GPU work: below the process a track for each GPU, its contexts and their streams (kernels, and
  graphs without visible kernels), and below a stream its copies by direction, memsets and graphs.
  CUDA events are instants. Waits, unified memory and overhead of the recording have separate
  tracks. Sizes, rates, registers and full names: debug annotations.
- Regions inside kernels (`warplens.intrakernel`): below their stream a track for each launch (for
  more than 32 launches, one for each name), below it one for each SM, and there one for each warp
  slot. Crossing regions are on sibling tracks. Marks are instants; payload and block are debug
  annotations.
- The CPU side: below a thread tracks for its states, Python calls (exceptions and warnings are
  instants), imports, garbage collections, the GIL (holds and waits; short holds on a separate
  track), OS calls and file access, with their details. With `:gpu-stages`, GPU work becomes stages
  of GPUs (`GpuRenderStageEvent`) instead of slices; each stream is a queue.
- Collectives: a track of the process, with group, sizes and types. MPI, OpenMP, OpenACC, system
  calls: tracks below their thread. A framework's details of its operations (shapes, types,
  numbers): debug annotations of their ranges.
- Samples of running threads: perf samples with their stacks. Select a part of the process's sample
  track for its flame graph. A frame has the file or library of its function; for Python, the line
  replaces the address.
- GPU memory, and the tensors' part of it: a counter of the process for each device and kind. GPU
  metrics: counters below a track of the device.
- Domain (`nvtx` for the default one) and category: the event's categories. Colour, payload (also
  structured, and from the end: `end payload`), unfinished, inherited, clipped: debug annotations.
- Data without a Perfetto field (ranks, devices, diagnostics, the stream of a track): attributes of
  the trace. `warplens import` reads them and restores the report, except for what is lost.
- Times: ns of CLOCK_MONOTONIC with snapshots of CLOCK_REALTIME, so that a trace of another recorder
  can be merged. For regions inside kernels also snapshots of the GPU's global timer (a separate
  clock for each GPU of a process). Each launch has its possible error (`uncertainty`) and the
  source of its time (`merged`) as annotations.

## What is lost
See LOSES. Nothing is rounded.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.analysis.dictionaries import codes
from warplens.disk.files import output
from warplens.errors import ReportError
from warplens.exporters.cpu_events import KINDS as CPU_KINDS
from warplens.exporters.cpu_events import CpuTracks, cpu_events
from warplens.exporters.cuda_events import KINDS as CUDA_KINDS
from warplens.exporters.cuda_events import events
from warplens.exporters.cuda_tracks import CudaTracks
from warplens.exporters.events import ExportEvents
from warplens.exporters.gpu_clocks import gpu_clocks
from warplens.exporters.gpu_counters import GpuCounters
from warplens.exporters.inside_kernels import InsideTracks, inside_events
from warplens.exporters.op_facts import OpFacts
from warplens.exporters.perfetto.attributes import counter_attributes, report_attributes, track_attributes
from warplens.exporters.perfetto.batch import EventColumns, Interned
from warplens.exporters.perfetto.debug_annotations import NAMES, encoded
from warplens.exporters.perfetto.stages import Stages
from warplens.exporters.profiles.perf_samples import PerfSamples
from warplens.exporters.protobuf import message, number, text
from warplens.exporters.rows import ExportRow
from warplens.exporters.samples import CounterSamples, counters, samples
from warplens.exporters.tracks import MARK_COLUMNS, RANGE_COLUMNS, Tracks, batches, values

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".perfetto-trace"
LOSES: tuple[Loss, ...] = (
    (
        "colours: Perfetto chooses its own, an annotation keeps them",
        "nvtx_ranges.color",
        "nvtx_marks.color",
    ),
    (
        "payloads of counter samples, and array values of payloads after the first 1,000",
        "payloads",
    ),
    (
        "times at which a counter had no value, and values between samples",
        "nvtx_counter_samples",
    ),
    (
        "the range that was open when a task was created",
        "tasks",
    ),
    (
        "named objects and operations on them, payload layouts",
        "nvtx_objects",
        "nvtx_schemas",
    ),
    (
        "arrows from an API call to its second and later operations",
        "kernels",
        "graphs",
    ),
    (
        "single allocations of GPU memory and tensors, links from backward to forward operations",
        "gpu_memory",
        "tensor_memory",
        "ops",
    ),
    (
        "framework ids of API calls, mangled kernel names",
        "external_ids",
        "kernels.mangled",
    ),
    (
        "samples of waiting threads, and Python samples if there are native ones; stacks of OS calls, API calls and operations",
        "samples",
        "osrt.stack",
        "cuda_api.stack",
        "ops.stack",
    ),
    (
        "regions inside kernels: warps after the first 8,000 rows, drops and clocks; re-imported as ranges",
        "intrakernel_launches",
    ),
)

# Field numbers of perfetto/trace/trace_packet.proto and the messages below it.
_PACKET = 1
_CLOCK_SNAPSHOT, _SEQUENCE, _INTERNED, _FLAGS, _DEFAULTS, _DESCRIPTOR = 6, 10, 12, 13, 59, 60
_REALTIME, _MONOTONIC = 1, 3
_FIRST_OWN_CLOCK, _OWN_CLOCKS = 128, (1 << 30) - 1  # of those that hold for the whole trace
_CATEGORY, _NAME, _ANNOTATION, _TEXT = 1, 2, 3, 29
_BYTES, _NS = 3, 1  # of CounterDescriptor.unit
_MERGE_BY_KEY = 3
_EXPLICIT = 3  # order of tracks
_RANGES = (*RANGE_COLUMNS, "end_thread")
_ODD = 0x9E3779B97F4A7C15
_QUOTING = frozenset("'\"\\")


def write(report: Report, out: Path, *, gpu_stages: bool = False) -> None:
    """Write the report as a Perfetto trace.

    Args:
        report: the report.
        out: the file.
        gpu_stages: write GPU work as stages of GPUs (`GpuRenderStageEvent`), which Perfetto's views
            of GPU compute need, instead of slices; with sizes, registers, bytes and correlation,
            without arrows.
    """
    with output(out) as file:
        _Writer(report, file, gpu_stages).run()


class _Writer:
    def __init__(self, report: Report, file: BinaryIO, gpu_stages: bool) -> None:
        self.report = report
        self.file = file
        self.tracks = Tracks.of(report)
        self.places = {process.key: index for index, process in enumerate(self.tracks.processes)}
        self.names = Interned(_NAME)
        self.categories = Interned(_CATEGORY)
        self.notes = Interned(_ANNOTATION)
        self.texts = Interned(_TEXT)
        self.cuda = CudaTracks.of(report, self.tracks)
        self.cpu = CpuTracks.of(report, self.tracks)
        self.inside = InsideTracks.of(report, self.tracks, self.cuda)
        self.rows = [*self.cuda.rows, *self.inside.rows, *self.cpu.rows]
        self.stages = Stages(self.tracks, self.cuda.rows) if gpu_stages else None
        self.gpu = GpuCounters.of(report)
        # Ids that differ between reports, so that concatenated traces stay apart; small, for they come with every event.
        digest = int.from_bytes(
            hashlib.blake2b(" ".join(m.id for m in report.manifests).encode(), digest_size=8).digest(),
            "little",
        )
        self.first_uuid = (digest & 0xFFFFF) << 14 | 1
        self.family_tracks: dict[int, int] = {}
        self.counters = counters(report)
        self.first_counter = self.first_uuid + len(self.tracks.processes)
        self.first_gpu = self.first_counter + len(self.counters)
        self.flow = digest
        self.ops = OpFacts(report)
        self._tids = {thread.key: thread.tid for thread in self.tracks.threads}
        owners = [self.tracks.owner(family)[1] for family in range(self.tracks.families)]
        self._shown = np.array([-1 if thread is None else thread.key for thread in owners], np.int64)
        self.payloads = report.tables["payloads"] > 0
        self.sequence = 1 + (digest >> 20) % 16000

    def run(self) -> None:
        families = self.tracks.families + len(self.rows)
        first = self.first_gpu + len(self.gpu.all) + len({counter.gpu for counter in self.gpu.all})
        encoder = native.make("perfetto_new", families, first, self.sequence)
        try:
            self.file.write(report_attributes(self.report, (*CUDA_KINDS, *CPU_KINDS)))
            self._head()
            parents = {task.thread for task in self.tracks.tasks} | {
                row.thread for row in self.rows if row.thread is not None
            }
            for thread in sorted(parents):  # tasks, API calls and the like go below their threads
                native.call("perfetto_touch", encoder, thread)
            for index in range(len(self.rows)):
                native.call("perfetto_touch", encoder, self.tracks.families + index)
            for batch in batches(self.report, "nvtx_ranges", self.tracks.columns(_RANGES)):
                self._columns(batch, "range").encode(encoder, instants=False)
                self._drain(encoder)
            for piece in events(self.report, self.cuda):
                self._events(encoder, piece, self.tracks.families)
            beside = self.tracks.families + len(self.cuda.rows)
            for piece in inside_events(self.report, self.inside):
                self._events(encoder, piece, beside)
            for piece in cpu_events(self.report, self.cpu):
                self._events(encoder, piece, beside + len(self.inside.rows))
            native.call("perfetto_finish", encoder)
            for batch in batches(self.report, "nvtx_marks", self.tracks.columns(MARK_COLUMNS)):
                self._columns(batch, "mark").encode(encoder, instants=True)
                self._drain(encoder)
            for sampled in samples(self.report, self.counters) if self.counters else ():
                self._samples(encoder, sampled, self.first_counter)
            for sampled in self.gpu.samples():
                self._samples(encoder, sampled, self.first_gpu)
            self._drain(encoder)
            self.file.writelines(PerfSamples(self.report, self.sequence).packets())
        finally:
            encoder.close()

    def _events(self, encoder: native.Handle, piece: ExportEvents, first: int) -> None:
        if self.stages is not None and self.stages.takes(piece):
            self.stages.encode(encoder, piece, self.names)
            self._drain(encoder)
            return
        self._placed(piece, first).encode(encoder, instants=piece.end is None)
        self._drain(encoder)

    def _samples(self, encoder: native.Handle, piece: CounterSamples, first: int) -> None:
        given = {
            "track": (piece.counter + first).astype(np.uint64),
            "time": piece.time,
            "whole": pa.array(piece.whole, mask=piece.is_float.astype(bool)),
            "real": piece.real,
        }
        native.call("perfetto_samples", encoder, pa.RecordBatch.from_pydict(given))
        self._drain(encoder)

    def _packet(self, *parts: bytes) -> None:
        self.file.write(message(_PACKET, *parts, number(_SEQUENCE, self.sequence)))

    def _head(self) -> None:
        for index, (monotonic, realtime) in enumerate(self._clocks()):
            clocks = (
                message(1, number(1, clock), number(2, time))
                for clock, time in ((_MONOTONIC, monotonic), (_REALTIME, realtime))
            )
            primary = number(2, _MONOTONIC) if index == 0 else b""
            self.file.write(
                message(_PACKET, message(_CLOCK_SNAPSHOT, *clocks, primary), number(_SEQUENCE, self.sequence))
            )
        for index, (_, _, own, theirs) in enumerate(gpu_clocks(self.report)):
            clock = _FIRST_OWN_CLOCK + (self.first_uuid + index & _OWN_CLOCKS)
            for monotonic, gpu in zip(own.tolist(), theirs.tolist(), strict=True):
                clocks = (
                    message(1, number(1, one), number(2, time))
                    for one, time in ((_MONOTONIC, monotonic), (clock, gpu))
                )
                self.file.write(
                    message(_PACKET, message(_CLOCK_SNAPSHOT, *clocks), number(_SEQUENCE, self.sequence))
                )
        for name in NAMES:  # they have the numbers that the encoder knows them by
            self.notes.id(name)
        self._packet(
            number(_FLAGS, 1),
            message(_DEFAULTS, number(58, _MONOTONIC)),
            message(_INTERNED, *self.notes.take_new()),
        )
        if self.stages is not None:
            self._packet(number(_FLAGS, 2), message(_INTERNED, *self.stages.interned()))
        for index, process in enumerate(self.tracks.processes):
            words = (text(2, word) for word in _words(process.command))
            described = message(3, number(1, process.pid), *words, text(6, process.name))
            self._packet(message(_DESCRIPTOR, number(1, self.first_uuid + index), described))
        for index, counter in enumerate(self.counters):
            if counter.process not in self.places:
                raise ReportError(
                    f"{self.report.path} is broken: the counter {counter.name} belongs to no process "
                    "of the report"
                )
            parent = number(5, self.first_uuid + self.places[counter.process])
            about = (text(2, counter.name), *([text(14, counter.description)] if counter.description else []))
            described = message(8, *_unit(counter.unit), *([number(5, 1)] if counter.delta else []))
            self._packet(
                message(_DESCRIPTOR, number(1, self.first_counter + index), parent, *about, described)
            )
        if self.counters:
            self.file.write(
                counter_attributes(
                    {self.first_counter + index: {"counter": c.key} for index, c in enumerate(self.counters)}
                )
            )
        self._gpu_counters()

    def _gpu_counters(self) -> None:
        """Describe the counters of GPUs.

        Those of a process below it, those of a whole device below a separate track.
        """
        headings = {counter.gpu: None for counter in self.gpu.all if counter.process is None}
        first = self.first_gpu + len(self.gpu.all)
        above = {name: first + index for index, name in enumerate(headings)}
        for name, uuid in above.items():
            self._packet(message(_DESCRIPTOR, number(1, uuid), text(2, name)))
        for index, counter in enumerate(self.gpu.all):
            if counter.process is not None and counter.process not in self.places:
                raise ReportError(
                    f"{self.report.path} is broken: its GPU memory is of the process {counter.process}, which it lacks"
                )
            parent = (
                above[counter.gpu]
                if counter.process is None
                else self.first_uuid + self.places[counter.process]
            )
            described = message(8, *_unit(counter.unit))
            self._packet(
                message(
                    _DESCRIPTOR,
                    number(1, self.first_gpu + index),
                    number(5, parent),
                    text(2, counter.name),
                    described,
                )
            )
        if self.gpu.all:
            self.file.write(
                counter_attributes(
                    {
                        self.first_gpu + index: counter.about
                        for index, counter in enumerate(self.gpu.all)
                        if counter.about
                    }
                )
            )

    def _clocks(self) -> list[tuple[int, int]]:
        first = self.report.manifests[0]
        rows = self.report.table("clocks", ["host", "monotonic", "realtime"]).to_pylist()
        clocks = [(row["monotonic"], row["realtime"]) for row in rows if row["host"] == first.host]
        return clocks or [(first.origin, first.origin + first.realtime_offset)]

    def _drain(self, encoder: native.Handle) -> None:
        """Write what describes the batch, then the batch."""
        new = [
            entry
            for interned in (self.names, self.categories, self.notes, self.texts)
            for entry in interned.take_new()
        ]
        if new:
            self._packet(number(_FLAGS, 2), message(_INTERNED, *new))
        entries = native.call("perfetto_fresh", encoder).tolist()
        for family, lane, uuid in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
            self.family_tracks.setdefault(family, uuid)
            self._packet(message(_DESCRIPTOR, number(1, uuid), *self._described(family, lane)))
        if entries:
            about = {
                uuid: self._about(family)
                for family, _, uuid in zip(entries[::3], entries[1::3], entries[2::3], strict=True)
            }
            self.file.write(track_attributes(about))
        self.file.write(native.call("perfetto_bytes", encoder).data)
        native.call("perfetto_clear", encoder)

    def _about(self, family: int) -> Mapping[str, int]:
        """Return what a family of tracks shows, by the keys of the report."""
        if family >= self.tracks.families:
            return self.rows[family - self.tracks.families].about
        process, thread = self.tracks.owner(family)
        task = self.tracks.task(family)
        of_thread = {} if thread is None else {"thread": thread.key}
        return {"process": process.key, **of_thread, **({} if task is None else {"task": task.key})}

    def _described(self, family: int, lane: int) -> Iterator[bytes]:
        if family >= self.tracks.families:
            yield from self._described_row(self.rows[family - self.tracks.families])
            return
        process, thread = self.tracks.owner(family)
        task = self.tracks.task(family)
        if task is not None:
            yield number(5, self.family_tracks[task.thread])
            yield text(2, task.name)
            # tasks may share a name, but not a track
            yield number(15, _MERGE_BY_KEY)
            yield number(17, self.family_tracks[family])
            return
        crossing = thread is not None and lane > 0
        yield number(
            5,
            self.family_tracks[family] if crossing else self.first_uuid + self.places[process.key],
        )
        if thread is None:
            yield text(2, "start/end ranges")
        elif lane == 0:
            yield message(4, number(1, process.pid), number(2, thread.tid), text(5, thread.name))
        else:
            yield text(2, f"{thread.name} (overlapping)")

    def _described_row(self, row: ExportRow) -> Iterator[bytes]:
        """Describe a row of CUDA or of the CPU side.

        Its further lanes have the same name and parent: viewers show them as one.
        """
        if row.above is not None:
            yield number(5, self.family_tracks[self.tracks.families + row.above])
            yield number(12, row.place)
        else:
            yield number(
                5, self.first_uuid + row.process if row.thread is None else self.family_tracks[row.thread]
            )
        yield text(2, row.name)
        yield number(11, _EXPLICIT)

    def _placed(self, piece: ExportEvents, first: int) -> EventColumns:
        """Return the events of rows, whose first one is the family `first`."""
        columns = EventColumns()
        columns.put("family", (piece.row + first).astype(np.int32))
        columns.put("id", piece.id)
        columns.put("parent", piece.parent)
        columns.put("start", piece.start)
        if piece.end is not None:
            columns.put("end", piece.end)
        columns.texts("name", piece.name, self.names, None)
        columns.texts("domain", pa.nulls(len(piece.id), pa.string()), self.categories, piece.kind.category)
        columns.notes(piece.details, self.notes, self.texts)
        if (piece.arrow >= 0).any():
            # one to one, and different between reports; 0 is none
            arrows = (piece.arrow.astype(np.uint64) * np.uint64(_ODD)) ^ np.uint64(self.flow)
            columns.flow(np.where(piece.arrow >= 0, arrows, 0).astype(np.uint64), ends=not piece.starts)
        return columns

    def _threads(
        self, batch: pa.RecordBatch, family: npt.NDArray[np.int32]
    ) -> Iterator[tuple[str, pa.Array]]:
        """Yield the facts that a track does not show.

        Threads of start/end ranges, the places of a task on other threads; start/end ranges of
        tasks.
        """
        thread = values(batch, "thread")
        tells = self._shown[family] != thread
        in_task = family >= self.tracks.first_task
        if "style" in batch.schema.names:
            numbers, texts = codes(batch.column("style"))
            apart = (
                np.isin(
                    numbers, [index for index, style in enumerate(texts.to_pylist()) if style == "StartEnd"]
                )
                & in_task
            )
            if apart.any():
                yield "start/end", pa.array(apart, mask=~apart)
        for name, keys in (("thread", np.where(tells, thread, -1)), ("end thread", None)):
            if keys is None:
                keys = (
                    values(batch, "end_thread", -1)
                    if "end_thread" in batch.schema.names
                    else np.full(len(thread), -1, np.int64)
                )
            if (keys < 0).all():
                continue
            distinct, where = np.unique(keys, return_inverse=True)
            tids = np.array([self._tids.get(key, -1) for key in distinct.tolist()], np.int64)[where]
            yield name, pa.array(tids, mask=tids < 0)

    def _columns(self, batch: pa.RecordBatch, kind: str) -> EventColumns:
        columns = EventColumns()
        family = self.tracks.family(batch)
        columns.put("family", family)
        columns.put("start", values(batch, "start"))
        columns.texts("name", batch.column("message"), self.names, None)
        columns.texts("domain", batch.column("domain"), self.categories, "nvtx")
        columns.texts("category", _category(batch), self.categories, None)
        columns.optional("color", batch.column("color"), pa.uint32())
        more = encoded(self.report, kind, values(batch, "id", -1)) if self.payloads else []
        columns.more(more)
        # A number given at the end is among the payloads, too.
        told = pa.array([bool(text) for text in more]) if any(more) else False
        for name, type_ in (("payload_int", pa.int64()), ("payload_float", pa.float64())):
            columns.optional(name, pc.if_else(told, None, batch.column(name)), type_)
        facts = self.ops.of(values(batch, "id")) if kind == "range" else []
        columns.notes([*facts, *self._threads(batch, family)], self.notes, self.texts)
        if kind == "range":
            columns.put("id", values(batch, "id"))
            columns.put("parent", values(batch, "parent", -1))
            columns.put("end", values(batch, "end"))
            flags = [
                batch.column(name).to_numpy(zero_copy_only=False)
                for name in ("unfinished", "inherited", "clipped")
            ]
            columns.put("flags", (flags[0] | flags[1] * 2 | flags[2] * 4).astype(np.uint8))
        return columns


def _category(batch: pa.RecordBatch) -> pa.Array:
    """The category's name, or its number where it has no name."""
    column = batch.column("category")
    ids = batch.column("category_id")
    if ids.null_count == len(ids) or column.null_count == ids.null_count:
        return column
    return pc.coalesce(pc.cast(column, pa.string()), pc.cast(ids, pa.string()))


def _unit(unit: str) -> list[bytes]:
    if not unit:
        return []
    known = (
        _BYTES
        if unit.lower() in ("bytes", "byte", "b")
        else _NS
        if unit.lower() in ("ns", "nanoseconds")
        else None
    )
    return [text(6, unit)] if known is None else [number(3, known)]


def _words(command: str) -> list[str]:
    if command.isascii() and command.isprintable() and not _QUOTING.intersection(command):
        return command.split()  # a hundred times as fast, and as right
    try:
        return shlex.split(command)
    except ValueError:
        return [command]
