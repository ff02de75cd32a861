"""Chrome trace event JSON, for chrome://tracing, Perfetto, speedscope and many scripts.

## What maps to what
- Processes and threads: `pid` and `tid`, with metadata events for their names.
- Push/pop ranges: complete events (`X`). Ranges that cross another domain's ranges: on a separate
  thread, named after it.
- Start/end ranges: async events (`b`, `e`), distinguished by their id.
- Tasks (asyncio, trio, generators): separate threads with the tasks' names, sorted behind the
  thread that first ran them.
- Marks: instants (`i`) of their thread or task.
- Counters: counter events (`C`) of their process, with the unit after the name. Counters of changes
  (`delta`) are summed.
- CUDA API calls: a thread `NAME CUDA API` of their process. Each GPU of a process: a separate
  process, with threads for its streams (kernels, and graphs without visible kernels), its copies by
  direction, memsets and graphs. Arrows (`s`, `f`) lead from a call to the first operation that it
  started. Waits, unified memory and overhead of the recording: threads. Details: `args`.
- Regions inside kernels (`warplens.intrakernel`): threads of their GPU, `Inside NAME #LAUNCH` for
  the launch and `… SM 3 Warp 0` for each warp slot of an SM. Crossing regions are on additional
  threads. Marks are instants; payload and block are in `args`.
- The CPU side: threads `NAME State`, `NAME Python` (exceptions and warnings are instants),
  `NAME Imports`, `NAME GC`, `NAME GIL`, `NAME OS calls`, … of their process, with details in
  `args`.
- Samples of running threads: `stackFrames` and `samples`, which chrome://tracing shows. The weight
  is the number of samples.
- Collectives, MPI, OpenMP, OpenACC and system calls: threads, with details in `args`.
- GPU memory, tensor memory and GPU metrics: counter events; metrics are in a process for each
  device.
- Domain (`nvtx` for the default one) and category: `cat`, comma-separated. Payload, colour and
  unusual properties: `args`. A payload that was given at the end of a range is its `end payload`.

## What is lost
See LOSES. Times are microseconds with three decimals, counted from the start of the report: no ns
is lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import count, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from warplens.analysis.dictionaries import codes
from warplens.disk.files import text_output
from warplens.errors import ReportError
from warplens.exporters.chrome.cuda import cuda_and_cpu
from warplens.exporters.chrome.json_text import arguments, microseconds, named, sort_index
from warplens.exporters.chrome.samples import stacks_and_samples
from warplens.exporters.samples import counters, samples
from warplens.exporters.tracks import MARK_COLUMNS, RANGE_COLUMNS, NestingLanes, Tracks, batches, values
from warplens.report.payloads.carried import Carried, carried
from warplens.report.payloads.text import text

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".trace.json"
LOSES: tuple[Loss, ...] = (
    (
        "colours: viewers choose their own, an argument keeps them",
        "nvtx_ranges.color",
        "nvtx_marks.color",
    ),
    (
        "the thread on which a start/end range ended",
        "nvtx_ranges.end_thread",
    ),
    (
        "payloads of counter samples, times without a value, and values between samples",
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
    "clocks: times count from the start of the report, which is in `otherData`",
    (
        "arrows from an API call to its second and later operations",
        "kernels",
        "graphs",
    ),
    (
        "single allocations of GPU memory and tensors, shapes and numbers of operations",
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
    "diagnostics and targets",
    (
        "regions inside kernels: warps after the first 8,000 rows, drops and clocks",
        "intrakernel_launches",
    ),
)
# Above the thread ids; viewers read them as 32 bits.
_TASKS = 1 << 25
_OVERLAP = 1 << 26
_ROWS = 1 << 16  # at once, as Python objects
_FLAGS = ("unfinished", "inherited", "clipped")


def write(report: Report, out: Path) -> None:
    """Write the report as Chrome trace events."""
    tracks = Tracks.of(report)
    other = {"origin_monotonic_ns": report.origin, "realtime_offset_ns": report.manifests[0].realtime_offset}
    with text_output(out) as file:
        file.write('{"displayTimeUnit":"ns","otherData":' + json.dumps(other) + ',"traceEvents":[\n')
        comma = ""
        for piece in _events(report, tracks):
            if piece:
                file.write(comma + ",\n".join(piece))
                comma = ",\n"
        file.write("\n]")
        file.writelines(stacks_and_samples(report))
        file.write("}\n")


def _events(report: Report, tracks: Tracks) -> Iterator[list[str]]:
    yield [named("process_name", process.pid, None, name=process.name) for process in tracks.processes]
    yield [
        named("thread_name", tracks.processes[thread.process].pid, thread.tid, name=thread.name)
        for thread in tracks.threads
    ]
    yield list(_tasks(tracks))
    crossing: set[tuple[int, int]] = set()
    with NestingLanes(tracks.families) as lanes:
        for batch in batches(report, "nvtx_ranges", tracks.columns(RANGE_COLUMNS), most=_ROWS):
            family = tracks.family(batch)
            lane = lanes.add(batch, family)
            args = _args(batch, _payloads(report, "range", batch))
            yield _ranges(
                batch,
                args,
                tracks,
                origin=report.origin,
                families=family.tolist(),
                lanes=lane.tolist(),
                crossing=crossing,
            )
    for batch in batches(report, "nvtx_marks", tracks.columns(MARK_COLUMNS), most=_ROWS):
        yield _marks(batch, _args(batch, _payloads(report, "mark", batch)), tracks, origin=report.origin)
    yield from _counters(report, tracks)
    yield from cuda_and_cpu(report, tracks)
    for number, lane_number in sorted(crossing):
        process, thread = tracks.owner(number)
        assert thread is not None
        name = getattr(tracks.task(number), "name", thread.name)
        yield [
            named(
                "thread_name",
                process.pid,
                _tid(tracks, number) + lane_number * _OVERLAP,
                name=f"{name} (overlapping)",
            )
        ]


def _tid(tracks: Tracks, family: int) -> int:
    """Return the thread id under which a family of tracks is shown."""
    process, thread = tracks.owner(family)
    if tracks.task(family) is not None:
        return _TASKS + family - tracks.first_task
    return thread.tid if thread is not None else process.pid


def _tasks(tracks: Tracks) -> Iterator[str]:
    """Name the tasks, and put each behind its thread."""
    if not tracks.tasks:
        return
    of_thread: dict[int, list[int]] = {}
    for index, task in enumerate(tracks.tasks):
        of_thread.setdefault(task.thread, []).append(index)
    place = count()
    for number, thread in enumerate(tracks.threads):
        pid = tracks.processes[thread.process].pid
        yield sort_index(pid, thread.tid, next(place))
        for index in of_thread.get(number, []):
            tid = _tid(tracks, tracks.first_task + index)
            yield named("thread_name", pid, tid, name=tracks.tasks[index].name)
            yield sort_index(pid, tid, next(place))


def _counters(report: Report, tracks: Tracks) -> Iterator[list[str]]:
    known = counters(report)
    pids = {process.key: process.pid for process in tracks.processes}
    heads = []
    for counter in known:
        if counter.process not in pids:
            raise ReportError(
                f"{report.path} is broken: the counter {counter.name} belongs to no process of the report"
            )
        name = f"{counter.name} ({counter.unit})" if counter.unit else counter.name
        heads.append(
            f'{{"ph":"C","name":{json.dumps(name)},"cat":"nvtx","pid":{pids[counter.process]},"tid":0'
        )
    sums: list[float] = [0] * len(known)
    for piece in samples(report, known, most=_ROWS) if known else ():
        lines = []
        columns = (piece.counter, piece.time - report.origin, piece.whole, piece.real, piece.is_float)
        for index, time, whole, real, is_float in zip(*(column.tolist() for column in columns), strict=True):
            value = real if is_float else whole
            if known[index].delta:
                value = sums[index] = sums[index] + value
            shown = f'"{value}"' if is_float and not math.isfinite(value) else repr(value)
            lines.append(f'{heads[index]},"ts":{microseconds(time)},"args":{{"value":{shown}}}}}')
        yield lines


def _ranges(
    batch: pa.RecordBatch,
    args: Iterator[str],
    tracks: Tracks,
    origin: int,
    families: list[int],
    lanes: list[int],
    crossing: set[tuple[int, int]],
) -> list[str]:
    owners = {family: (*tracks.owner(family), _tid(tracks, family)) for family in set(families)}
    lines = []
    starts, ends = (values(batch, "start") - origin).tolist(), (values(batch, "end") - origin).tolist()
    ids = values(batch, "id").tolist()
    for start, end, id, family, lane, head, said in zip(
        starts, ends, ids, families, lanes, _heads(batch), args, strict=True
    ):
        process, thread, tid = owners[family]
        if thread is None:
            where = f'"id":"{id}","pid":{process.pid},"tid":{process.pid}'
            lines.append(f'{{"ph":"b",{head},"ts":{microseconds(start)},{where}{said}}}')
            lines.append(f'{{"ph":"e",{head},"ts":{microseconds(end)},{where}}}')
            continue
        if lane:
            crossing.add((family, lane))
        tid += lane * _OVERLAP
        lines.append(
            f'{{"ph":"X",{head},"ts":{microseconds(start)},"dur":{microseconds(end - start)},"pid":{process.pid},"tid":{tid}{said}}}'
        )
    return lines


def _marks(batch: pa.RecordBatch, args: Iterator[str], tracks: Tracks, origin: int) -> list[str]:
    lines = []
    starts, families = (values(batch, "start") - origin).tolist(), tracks.family(batch).tolist()
    owners = {family: (tracks.owner(family)[0].pid, _tid(tracks, family)) for family in set(families)}
    for start, family, head, said in zip(starts, families, _heads(batch), args, strict=True):
        pid, tid = owners[family]
        lines.append(f'{{"ph":"i","s":"t",{head},"ts":{microseconds(start)},"pid":{pid},"tid":{tid}{said}}}')
    return lines


def _heads(batch: pa.RecordBatch) -> Iterator[str]:
    """Name and category of each row; texts repeat, so each combination is written once."""
    columns = [codes(batch.column(name)) for name in ("message", "domain", "category")]
    texts = [[*dictionary.to_pylist(), None] for _, dictionary in columns]  # code -1 is null
    numbers = batch.column("category_id")
    category_ids = [None] * batch.num_rows if numbers.null_count == len(numbers) else numbers.to_pylist()
    known: dict[tuple[int, int, int, int | None], str] = {}
    for key in zip(*(column.tolist() for column, _ in columns), category_ids, strict=True):
        head = known.get(key)
        if head is None:
            name, domain, category = (values[code] for values, code in zip(texts, key, strict=False))
            if category is None and key[3] is not None:
                category = str(key[3])
            categories = ",".join(part for part in (domain or "nvtx", category) if part)
            head = known[key] = f'"name":{json.dumps(name or "")},"cat":{json.dumps(categories)}'
        yield head


def _args(batch: pa.RecordBatch, payloads: list[str]) -> Iterator[str]:
    """The `args` of each row, with a leading comma; empty if there is nothing to say."""
    columns = [payloads]
    for name, write in _ARGS:
        texts = arguments(batch.column(name), write)
        if (
            payloads and texts and name.startswith("payload")
        ):  # a number given at the end is among the payloads, too
            texts = ["" if whole else text for whole, text in zip(payloads, texts, strict=True)]
        columns.append(texts)
    if "unfinished" in batch.schema.names:
        flags = [name for name in _FLAGS if batch.column(name).true_count]
        columns += [
            [f'"{name}":true' if value else "" for value in batch.column(name).to_pylist()] for name in flags
        ]
    columns = [column for column in columns if column]
    if not columns:
        return repeat("", batch.num_rows)
    if len(columns) == 1:
        return (f',"args":{{{text}}}' if text else "" for text in columns[0])
    joined = (",".join(filter(None, texts)) for texts in zip(*columns, strict=True))
    return (f',"args":{{{text}}}' if text else "" for text in joined)


def _payloads(report: Report, kind: str, batch: pa.RecordBatch) -> list[str]:
    """The structured payloads of each row as arguments; empty altogether if there are none."""
    ids = values(batch, "id", -1)
    payloads = carried(report, kind, ids, shape=_payload)
    return [payloads.get(id, "") for id in ids.tolist()] if payloads else []


def _payload(event: Carried) -> str:
    sides = {"payload": event.begin, "end payload": event.end}
    notes = {name: values[0] if len(values) == 1 else values for name, values in sides.items() if values}
    if event.cut:
        notes["payload cut"] = True
    return json.dumps(_finite(notes), default=text)[1:-1]


def _finite(value: Any) -> Any:
    """JSON has no words for infinite and not-a-number."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _float(value: float) -> str:
    # JSON has no words for infinite and not-a-number
    return f'"payload":{value!r}' if math.isfinite(value) else f'"payload":"{value}"'


_ARGS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("payload_int", '"payload":{}'.format),
    ("payload_float", _float),
    ("color", lambda value: f'"color":"#{value & 0xFFFFFF:06X}"'),
)
