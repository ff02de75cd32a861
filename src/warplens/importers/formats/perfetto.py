"""Perfetto protobuf traces: warplens exports, TrackEvent traces of other tools, and GPU render stages.

## Made by
`warplens export`, the Perfetto SDK, tracebox and others. Also compressed with gzip, or with
compressed packets (deflate).

## What maps to what
| there | here |
|---|---|
| processes, threads (descriptors, `process_tree`) with events | `processes`, `threads` |
| slices and instants of a thread | `nvtx_ranges` (push/pop), `nvtx_marks`; their category is the category |
| slices of other tracks | ranges of a task (`tasks`) with the track's name, of the thread or process above the track |
| debug annotations | one payload of the event; those of its end: one payload of the end |
| counters | `nvtx_counters`, `nvtx_counter_samples` |
| legacy events (phases `B E X i b n e`) | the same |
| `print` events of ftrace (Android's atrace: `B E S F G H C I N`) | the same, on the thread, task or counter that they name |
| `GpuRenderStageEvent` | `kernels`, `memcpys`, `memsets`; the GPU is the device, the queue the stream |
| `PerfSample` with stacks | `samples`, `frames` |
| clock snapshots | all times are on one clock: the trace's primary clock, or the one with most events |

Traces of `warplens export -t perfetto` become the original report: the tables of CUDA, of the CPU
side, of frameworks and MPI are recognised by the category of an event and the attributes of the
trace.

## What is dropped
`diagnostics` counts packets of other kinds (logs, heaps, …) and other ftrace events as
`not-imported`, unknown kinds by their number. It also counts arrows (flows), except those from
warplens's own API calls to the work that they started, events whose names were lost before the
trace begins, and ends without a start.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from warplens.errors import NotAReport, ReportError
from warplens.importers.perfetto import counters, ranges, samples, stages, tables, wire
from warplens.importers.perfetto.clocks import Clocks
from warplens.importers.perfetto.descriptors import described
from warplens.importers.perfetto.details import Details
from warplens.importers.perfetto.notices import say
from warplens.importers.perfetto.own import own
from warplens.importers.perfetto.places import TrackPlaces
from warplens.importers.perfetto.slices import PerfettoContext, PerfettoDiagnostics
from warplens.importers.perfetto.trace import PerfettoTrace
from warplens.storage.writer import Facts

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import PartWriter

SUFFIXES = (".perfetto-trace", ".pftrace", ".perfetto-trace.gz", ".pftrace.gz")
CONTENT = "Perfetto trace"
DROPS: tuple[str, ...] = (
    "arrows, except those from warplens's own API calls",
    "ftrace events, logs, heaps and other packets without a counterpart",
)
_HEAD = 4096
_GZIP = b"\x1f\x8b"
_LATEST = 1 << 62
_KNOWN = range(1, 1024)
_SMALL = ("devices", "contexts", "streams", "targets", "capture_windows")


def recognises(path: Path) -> bool:
    """Say whether the file begins with packets of a Perfetto trace."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_GZIP):
        import zlib

        try:
            head = zlib.decompressobj(31).decompress(head, _HEAD)
        except zlib.error:
            return False
    return _begins_with_packets(head)


def _begins_with_packets(head: bytes) -> bool:
    """Say whether these bytes begin with `packet` fields.

    At least the first has to be a message of fields that packets have.
    """
    if not head.startswith(b"\n"):
        return False
    size = shift = at = 0
    for at in range(1, min(len(head), 6)):
        size |= (head[at] & 0x7F) << shift
        shift += 7
        if head[at] < 0x80:
            break
    packet = head[at + 1 : at + 1 + size]
    if not packet:
        return False
    seen = 0
    try:
        for number, _ in wire.fields(packet):
            if number not in _KNOWN:
                return False
            seen += 1
    except ValueError:
        # cut where the head ends
        return len(packet) < size and (seen > 0 or (len(head) == _HEAD and _begins_with_message(packet)))
    following = head[at + 1 + size : at + 2 + size]
    return seen > 0 and following in (b"", b"\n")


def _begins_with_message(packet: bytes) -> bool:
    """Say whether a packet begins with a message, as one does that is longer than what was read of it."""
    tag = packet[0] if packet[0] < 0x80 or len(packet) < 2 else packet[0] & 0x7F | packet[1] << 7
    return tag & 7 == 2 and tag >> 3 in _KNOWN


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises NotAReport for a file without packets, ReportError for a broken one.
    """
    with PerfettoTrace(source, lambda done: progress("packets", 0.5 * done)) as trace:
        return _read(source, trace, part, progress=progress)


def _read(source: Path, trace: PerfettoTrace, part: PartWriter, progress: Progress) -> Facts:
    if not len(trace.columns["others"]["field"]) and not len(trace.events["time"]) and not trace.left_out:
        raise NotAReport(f"{source} is not a Perfetto trace: it contains no packet.")
    tally, ours, about = PerfettoDiagnostics(), own(trace), described(trace)
    clocks = Clocks(trace)
    time = clocks.times(trace.events)
    if len(time) and (int(np.abs(time).max()) > _LATEST):
        raise ReportError(f"{source} is broken: it has events at impossible times.")
    progress("slices", 0.55)
    partner, without = trace.pair(time)
    last = int(time.max()) if len(time) else 0
    if len(trace.samples["time"]):
        last = max(last, int(clocks.times(trace.samples).max()))
    end = (
        np.where(partner >= 0, time[np.maximum(partner, 0)], np.where(trace.events["type"] == 1, last, time))
        if len(time)
        else time
    )
    end = np.maximum(end, time)
    places = TrackPlaces(trace, about, ours, part=part)
    details = Details(trace, partner)
    context = PerfettoContext(
        trace,
        about,
        ours,
        clocks=clocks,
        places=places,
        part=part,
        tally=tally,
        details=details,
        time=time,
        end=end,
        partner=partner,
        last=last,
    )
    progress("ranges", 0.6)
    ranges.write(context)
    progress("tables", 0.8)
    tables.write(context)
    stages.write(context)
    first, host = (
        int(time.min()) if len(time) else 0,
        (ours.reports[0]["host"] if ours.reports else "") or "perfetto",
    )
    counters.write(context, host)
    samples.write(context)
    _small(context)
    say(context, without)
    facts = _facts(context, first, host)
    places.finish(facts.origin, facts.end, host)
    if not ours.rows("capture_windows"):
        span = {"start": facts.origin, "end": facts.end}
        part.write(
            "capture_windows",
            [
                {
                    "part": part.part,
                    "number": 1,
                    "host": host,
                    **span,
                    "opened_by": "start",
                    "closed_by": "end",
                }
            ],
        )
    if not ours.rows("targets"):
        nothing = {"os": "", "kernel": "", "machine": "", "cpu": "", "cpus": 0, "memory": 0}
        part.write("targets", [{"host": host, "boot_id": part.id, **nothing}])
    kind = {"host": host, "kind": clocks.name}
    part.write(
        "clocks",
        [
            {**kind, "counter": at, "monotonic": at, "realtime": real}
            for at, real in clocks.pairs()
            if at >= 0
        ],
    )
    part.write("diagnostics", tally.rows)
    progress("write", 1.0)
    return facts


def _small(context: PerfettoContext) -> None:
    """Write the small tables of warplens's own as they were."""
    from warplens.model.tables import TABLES

    for table in _SMALL:
        rows = []
        for number, row in context.own.rows(table):
            made = {column.name: row.get(column.name) for column in TABLES[table].columns}
            if "process" in made:
                process = context.places.key("process", number, made["process"])
                made["process"] = None if process < 0 else process
                if process < 0 and table != "capture_windows":
                    continue
            if table == "capture_windows":
                made["part"] = context.part.part
            rows.append(made)
        context.write(table, rows)
    for number, row in context.own.rows("diagnostics"):
        process = context.places.key("process", number, row.get("process"))
        context.tally.rows.append({**row, "process": None if process < 0 else process})


def _facts(context: PerfettoContext, first: int, host: str) -> Facts:
    first_report = context.own.reports[0] if context.own.reports else {}
    origin = min((report["origin"] for report in context.own.reports), default=first)
    exit_status = first_report.get("exit_status")
    realtime = context.clocks.realtime_offset or int(first_report.get("realtime_offset") or 0)
    end = max((report["end"] for report in context.own.reports), default=context.last)
    sources = first_report.get("sources") or {"perfetto": {"on": True, "by": "perfetto"}}
    return Facts(
        id=context.part.id,
        host=host,
        boot_id=context.part.id,
        command=first_report.get("command") or [],
        origin=min(origin, first) if len(context.time) else origin,
        end=max(end, context.last),
        realtime_offset=max(realtime, 0),
        exit_status=exit_status if isinstance(exit_status, int) else None,
        clock=context.clocks.name,
        sources=sources,
    )
