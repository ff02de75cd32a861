"""Makes spool files in Python, byte by byte, for tests of the reader and of finishing."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warplens.disk.folder import Folder
from warplens.handover.control_layout import VERSION as CONTROL_VERSION
from warplens.testing.wide_records import WIDE, wide_record

PAGE = 4096
NO_THREAD = 0xFFFFFFFF
TICKS = (
    10**15
)  # when process 10 started: later than any process can, else a real one would count as the writer
TYPES = {
    "range": 1,
    "start_end": 2,
    "mark": 3,
    "thread_switch": 4,
    "origin": 5,
    "thread": 6,
    "domain": 7,
    "category": 8,
    "thread_name": 9,
    "task_switch": 10,
    "define": 11,
    "sample": 12,
    "operation": 13,
}
ACTIONS = {
    "resource_destroy": 1,
    "sync_destroy": 2,
    "sync_acquire_start": 3,
    "sync_acquire_success": 5,
    "sync_releasing": 6,
    "region_register": 9,
}
_HEAD: list[tuple[str, str, int]] = [
    ("type", "u1", 0),
    ("flags", "u1", 1),
    ("domain", "u2", 2),
    ("name", "u4", 4),
    ("start", "u8", 8),
]
EVENT_FIELDS = [*_HEAD, ("end", "u8", 16), ("payload", "u8", 24), ("color", "u4", 32), ("category", "u4", 36)]
_META = [*_HEAD, ("id", "u8", 16), ("thread", "u4", 24), ("tid", "u4", 28), ("category", "u4", 32)]
_ORIGIN = [("type", "u1", 0), ("id", "u8", 8), ("parent", "u8", 16), ("thread", "u4", 24), ("task", "u4", 28)]
_OPERATION = [*_HEAD, ("object", "u8", 16), ("value", "u8", 24), ("action", "u4", 32)]
_SLOT = [("id", "u8", 40), ("parent", "u8", 48), ("thread", "u4", 56), ("task", "u4", 60)]
_EVENTS = ("range", "start_end", "mark", "sample")


def description(process: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object behind the header."""
    fields = (
        dict.fromkeys(TYPES, _META)
        | dict.fromkeys(_EVENTS, EVENT_FIELDS)
        | {"origin": _ORIGIN, "operation": _OPERATION}
    )
    records = {name: {"id": number, "size": 40, "fields": fields[name]} for name, number in TYPES.items()}
    return {
        "process": dict(process),
        "records": records,
        "slot": {"size": 64, "fields": _SLOT},
        "actions": ACTIONS,
        "wide": WIDE,
    }


def event(
    kind: str,
    start: int,
    end: int | None = None,
    name: int = 0,
    *,
    domain: int = 0,
    flags: int = 0,
    payload: int = 0,
    color: int = 0,
    category: int = 0,
) -> bytes:
    """Return an event record; `end` defaults to `start`, as in marks."""
    last = start if end is None else end
    return struct.pack("<BBHIQQQII", TYPES[kind], flags, domain, name, start, last, payload, color, category)


def meta(
    kind: str,
    name: int = 0,
    *,
    domain: int = 0,
    start: int = 0,
    number: int = 0,
    thread: int = 0,
    tid: int = 0,
    category: int = 0,
) -> bytes:
    """Return a describing record: a thread, a domain, a category, an object, or the owner of the next records."""
    return struct.pack("<BBHIQQIIII", TYPES[kind], 0, domain, name, start, number, thread, tid, category, 0)


def origin(thread: int, number: int = 0, *, parent: int = 0, task: int = 0) -> bytes:
    """Return the record behind a start/end range that says where it began."""
    return struct.pack("<BBHIQQIIQ", TYPES["origin"], 0, 0, 0, number, parent, thread, task, 0)


def operation(action: int, start: int, *, domain: int = 0, object_id: int = 0, value: int = 0) -> bytes:
    """Return a record of something done to an object."""
    return struct.pack("<BBHIQQQII", TYPES["operation"], 0, domain, 0, start, object_id, value, action, 0)


def slot(record: bytes, thread: int, number: int = 1, *, parent: int = 0, task: int = 0) -> bytes:
    """Return a slot of the process-wide table of open start/end ranges."""
    return record + struct.pack("<QQII", number, parent, thread, task)


def blob(data: bytes, schema: int, *, following: int = 0, flags: int = 0) -> bytes:
    """Return a payload; `following` is the file offset of the event's next one.

    Flags: 1 given at the end, 2 cut.
    """
    return (struct.pack("<IIQQ", len(data) + 1, flags, schema, following) + data).ljust(
        24 + (len(data) + 7) // 8 * 8, b"\0"
    )


def blobs(thread: int, items: Sequence[bytes], at: int) -> tuple[bytes, list[int]]:
    """Return a chunk of payloads that lies at file offset `at`, and the offsets of the payloads in it."""
    offsets = [at + 64 + sum(len(item) for item in items[:number]) for number in range(len(items))]
    return chunk(4, 0, thread, contents=b"".join(items)), offsets


def define(text: int, number: int, *, domain: int = 0, start: int = 0, thread: int = 0) -> bytes:
    """Return the record that the string `text` (see `definition`) defines object `number` of a domain."""
    return meta("define", text, domain=domain, start=start, number=number, thread=thread)


def definition(kind: str, **members: Any) -> str:
    """Return the JSON of a definition."""
    return json.dumps({"kind": kind, **members})


def chunk(
    kind: int,
    stride: int,
    thread: int,
    contents: bytes,
    size: int | None = None,
    sequence: int = 0,
    record: int = 0,
) -> bytes:
    """Return a chunk of `size` bytes (default: the pages its contents need).

    `record`: the type of all its records, if it is wide.
    """
    whole = size or (64 + len(contents) + PAGE - 1) // PAGE * PAGE
    header = struct.pack("<IBBHQII", 0x4B484357, kind, record, stride, whole, thread, sequence) + bytes(40)
    return (header + contents).ljust(whole, b"\0")


def records(thread: int, items: Sequence[bytes]) -> bytes:
    """Return a chunk of records."""
    return chunk(1, 40, thread, contents=b"".join(items))


def wide(kind: str, items: Sequence[Mapping[str, int]], sequence: int = 0) -> bytes:
    """Return a wide chunk: `items` are records of type `kind` by field; those not named are 0."""
    contents = b"".join(wide_record(kind, item) for item in items)
    return chunk(
        5, WIDE[kind]["size"], NO_THREAD, contents=contents, sequence=sequence, record=WIDE[kind]["id"]
    )


def strings(texts: Mapping[int, str | bytes]) -> bytes:
    """Return a chunk of strings by id."""
    items = []
    for number, text in texts.items():
        raw = text.encode() if isinstance(text, str) else text
        items.append(
            (struct.pack("<II", len(raw) + 1, number) + raw).ljust(8 + (len(raw) + 7) // 8 * 8, b"\0")
        )
    return chunk(2, 0, NO_THREAD, contents=b"".join(items))


def open_table(thread: int, items: Sequence[bytes]) -> bytes:
    """Return a table of open ranges: a thread's stack, or with NO_THREAD the process's slots."""
    return chunk(3, 64 if thread == NO_THREAD else 40, thread, contents=b"".join(items))


def spool(
    chunks: Sequence[bytes],
    process: Mapping[str, Any] | None = None,
    *,
    clock: tuple[int, int, int, int, int] = (0, 0, 0, 0, 1),
    end_ns: int = 0,
    error: int = 0,
    dropped: Mapping[int, int] | None = None,
) -> bytes:
    """Return a whole spool file.

    `clock`: kind, shift, t0, base_ns, mult. `dropped`: record type -> count.
    """
    text = _facts(process)
    first = first_chunk(process)
    body = b"".join(chunks)
    end = first + len(body)
    losses = [(dropped or {}).get(number, 0) for number in range(64)]
    head = struct.pack("<8sIIII", b"WLSPOOL1", 3, first, PAGE, len(text)) + struct.pack("<IIQQQ", *clock)
    head += struct.pack("<QQQII64Q", end, end, end_ns, error, 0, *losses)
    return head.ljust(PAGE, b"\0") + text.ljust(first - PAGE, b"\0") + body


def control(
    windows: Sequence[tuple[int, int, int, int, int]] = (),
    *,
    gate: int | None = None,
    clock: tuple[int, int, int, int, int] = (0, 0, 0, 0, 1),
    keep_ns: int = 0,
    max_bytes: int = 0,
    over: int = 0,
    cuda_flags: int = 0,
    flush_ms: int = 0,
) -> bytes:
    """Return a control file.

    `windows`: open_ns, close_ns (0: open), opened_by, closed_by (causes), pid; `gate` defaults to
    theirs.
    """
    moved = 2 * len(windows) - (bool(windows) and windows[-1][1] == 0)
    page = struct.pack("<8sII", b"WLCNTRL1", CONTROL_VERSION, 0) + struct.pack("<IIQQQ", *clock) + bytes(40)
    page += (
        struct.pack("<II", moved if gate is None else gate, 0)
        + bytes(24)
        + struct.pack("<QQQQ", keep_ns, max_bytes, 0, over)
    )
    page += struct.pack("<II", cuda_flags, flush_ms)
    table = b"".join(struct.pack("<QQIIII", *window, 0) for window in windows)
    return page.ljust(2 * PAGE, b"\0") + table.ljust(8192 * 32, b"\0")


def first_chunk(process: Mapping[str, Any] | None = None) -> int:
    """Return the file offset of the first chunk of a spool."""
    return PAGE + (len(_facts(process)) + PAGE - 1) // PAGE * PAGE


def _facts(process: Mapping[str, Any] | None) -> bytes:
    facts = {
        "pid": 10,
        "ppid": 1,
        "host": "host",
        "boot_id": "boot",
        "start_ticks": TICKS,
        "start_ns": 100,
        "fork_ns": 0,
    }
    return json.dumps(
        description({**facts, "executable": "/bin/x", "command": ["x", "a b"], **(process or {})})
    ).encode()


def write(directory: Path, data: bytes, *, host: str = "host", pid: int = 10, ticks: int = TICKS) -> Path:
    """Put a spool file into a spool directory, under the name its agent would give it."""
    name = f"{host}-{pid}-{ticks}.spool"
    with Folder(directory, create=True) as folder:
        folder.write(name, data)
    return directory / name


PROCESS_KINDS = {"program": 1, "fork": 2, "exec": 3, "exit": 4, "waited": 5, "foreign": 6, "running": 7}


def process_record(
    kind: str,
    pid: int,
    ppid: int,
    time: int,
    *texts: str,
    status: int = 0,
    rank: int = -1,
    local_rank: int = -1,
    cut: bool = False,
) -> bytes:
    """Return one record of the register of processes, `processes.log`.

    `texts` are the executable and the command line.
    """
    body = b"".join(text.encode() + b"\0" for text in texts)
    body += bytes(-len(body) % 8)
    numbers = (
        64 + len(body),
        PROCESS_KINDS[kind],
        pid,
        ppid,
        status,
        time,
        rank,
        local_rank,
        len(texts),
        int(cut),
    )
    return struct.pack("<4sIIiiiQiiII16x", b"WPRC", *numbers) + body
