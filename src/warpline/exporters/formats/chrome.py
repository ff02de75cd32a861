"""Chrome trace event JSON, for chrome://tracing, Perfetto, speedscope and many scripts.

## What maps to what
- A process and a thread: `pid` and `tid`, with metadata events for their names.
- Push/pop ranges: complete events (`X`). Those that cross another domain's ranges: on a thread of their own, named after it.
- Start/end ranges: async events (`b`, `e`), told apart by their id.
- Marks: instants (`i`) of their thread.
- Domain (`nvtx` for the default one) and category: `cat`, comma-separated. Payload, colour, and what is unusual: `args`.

## What is lost
See LOSES. Times are microseconds with three decimals, counted from the begin of the report, so that no ns is lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from warpline.exporters.tracks import MARK_COLUMNS, RANGE_COLUMNS, Lanes, Tracks, batches, values
from warpline.query.native import codes

if TYPE_CHECKING:
    from warpline.query import Report

SUFFIX = ".trace.json"
LOSES: tuple[str, ...] = (
    "colours are kept as an argument, viewers pick their own",
    "the thread on which a start/end range ended",
    "clocks: times count from the begin of the report, which is in `otherData`",
    "diagnostics and targets",
)
# Above the thread ids; viewers read them as 32 bits.
_OVERLAP = 1 << 26
_FLAGS = ("unfinished", "inherited", "clipped")


def write(report: Report, out: Path) -> None:
    """Write the report as Chrome trace events."""
    tracks = Tracks(report)
    other = {"origin_monotonic_ns": report.origin, "realtime_offset_ns": report.manifests[0].realtime_offset}
    with open(out, "w", encoding="utf-8", newline="\n", buffering=1 << 20) as file:
        file.write('{"displayTimeUnit":"ns","otherData":' + json.dumps(other) + ',"traceEvents":[\n')
        comma = ""
        for piece in _events(report, tracks):
            if piece:
                file.write(comma + ",\n".join(piece))
                comma = ",\n"
        file.write("\n]}\n")


def _events(report: Report, tracks: Tracks) -> Iterator[list[str]]:
    yield [_named("process_name", process.pid, None, process.name) for process in tracks.processes]
    yield [_named("thread_name", tracks.processes[thread.process].pid, thread.tid, thread.name) for thread in tracks.threads]
    crossing: set[tuple[int, int]] = set()
    with Lanes(tracks) as lanes:
        for batch in batches(report, "nvtx_ranges", RANGE_COLUMNS):
            family = tracks.family(batch)
            lane = lanes.add(batch, family)
            yield _ranges(batch, tracks, report.origin, family.tolist(), lane.tolist(), crossing)
    for batch in batches(report, "nvtx_marks", MARK_COLUMNS):
        yield _marks(batch, tracks, report.origin)
    for number, lane_number in sorted(crossing):
        process, thread = tracks.owner(number)
        assert thread is not None
        yield [_named("thread_name", process.pid, thread.tid + lane_number * _OVERLAP, f"{thread.name} (overlapping)")]


def _ranges(
    batch: pa.RecordBatch, tracks: Tracks, origin: int, families: list[int], lanes: list[int], crossing: set[tuple[int, int]]
) -> list[str]:
    owners = {family: tracks.owner(family) for family in set(families)}
    lines = []
    starts, ends = (values(batch, "start") - origin).tolist(), (values(batch, "end") - origin).tolist()
    ids = values(batch, "id").tolist()
    for start, end, id, family, lane, head, args in zip(starts, ends, ids, families, lanes, _heads(batch), _args(batch), strict=True):
        process, thread = owners[family]
        if thread is None:
            where = f'"id":"{id}","pid":{process.pid},"tid":{process.pid}'
            lines.append(f'{{"ph":"b",{head},"ts":{_us(start)},{where}{args}}}')
            lines.append(f'{{"ph":"e",{head},"ts":{_us(end)},{where}}}')
            continue
        if lane:
            crossing.add((family, lane))
        tid = thread.tid + lane * _OVERLAP
        lines.append(f'{{"ph":"X",{head},"ts":{_us(start)},"dur":{_us(end - start)},"pid":{process.pid},"tid":{tid}{args}}}')
    return lines


def _marks(batch: pa.RecordBatch, tracks: Tracks, origin: int) -> list[str]:
    lines = []
    starts = (values(batch, "start") - origin).tolist()
    for start, family, head, args in zip(starts, tracks.family(batch).tolist(), _heads(batch), _args(batch), strict=True):
        process, thread = tracks.owner(family)
        tid = thread.tid if thread is not None else process.pid
        lines.append(f'{{"ph":"i","s":"t",{head},"ts":{_us(start)},"pid":{process.pid},"tid":{tid}{args}}}')
    return lines


def _us(ns: int) -> str:
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


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


def _args(batch: pa.RecordBatch) -> Iterator[str]:
    """The `args` of each row, with a leading comma; empty where there is nothing to say."""
    columns = [_texts(batch.column(name), write) for name, write in _ARGS]
    if "unfinished" in batch.schema.names:
        flags = [name for name in _FLAGS if batch.column(name).true_count]
        columns += [[f'"{name}":true' if value else "" for value in batch.column(name).to_pylist()] for name in flags]
    columns = [column for column in columns if column]
    if not columns:
        return repeat("", batch.num_rows)
    if len(columns) == 1:
        return (f',"args":{{{text}}}' if text else "" for text in columns[0])
    joined = (",".join(filter(None, texts)) for texts in zip(*columns, strict=True))
    return (f',"args":{{{text}}}' if text else "" for text in joined)


def _texts(column: pa.Array, write: Callable[[Any], str]) -> list[str]:
    """Each value as an argument, empty where null; empty altogether where all are null."""
    if column.null_count == len(column):
        return []
    filled = pc.fill_null(column, 0) if column.null_count else column
    texts = list(map(write, filled.to_numpy(zero_copy_only=False).tolist()))
    if column.null_count:
        texts = [
            text if there else "" for text, there in zip(texts, column.is_valid().to_numpy(zero_copy_only=False).tolist(), strict=True)
        ]
    return texts


def _float(value: float) -> str:
    # JSON has no words for infinite and not-a-number
    return f'"payload":{value!r}' if math.isfinite(value) else f'"payload":"{value}"'


_ARGS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("payload_int", '"payload":{}'.format),
    ("payload_float", _float),
    ("color", lambda value: f'"color":"#{value & 0xFFFFFF:06X}"'),
)


def _named(kind: str, pid: int, tid: int | None, name: str) -> str:
    return json.dumps({"ph": "M", "name": kind, "pid": pid, **({} if tid is None else {"tid": tid}), "args": {"name": name}})
