"""Makes small traces as PyTorch's profiler and other tools write them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

HOST, AUTOGRAD, SECOND_GPU = 4000, 4007, 1
Event = dict[str, Any]


def event(category: str | None, name: str, start: float, length: float | None = None, **more: Any) -> Event:
    """Return a complete event; keywords with underscores are keys of it, `args` its arguments."""
    made: Event = {"ph": "X", "cat": category, "name": name, "pid": HOST, "tid": HOST, "ts": start}
    if category is None:
        del made["cat"]
    if length is not None:
        made["dur"] = length
    return {**made, **more}


def op(name: str, start: float, length: float, *, tid: int = HOST, **args: Any) -> Event:
    """Return an operation; `args` with `_` for spaces."""
    return event(
        "cpu_op",
        name,
        start,
        length,
        tid=tid,
        args={key.replace("_", " "): value for key, value in args.items()},
    )


def call(
    name: str, start: float, length: float, correlation: int, category: str = "cuda_runtime", **more: Any
) -> Event:
    """Return an API call."""
    return event(category, name, start, length, args={"cbid": 211, "correlation": correlation}, **more)


def gpu(
    category: str,
    name: str,
    start: float,
    length: float,
    correlation: int,
    *,
    device: int = 0,
    stream: int = 7,
    **args: Any,
) -> Event:
    """Return work of a GPU."""
    told = {"device": device, "context": 1, "stream": stream, "correlation": correlation, **args}
    return event(category, name, start, length, pid=device, tid=stream, args=told)


def kernel(name: str, start: float, length: float, correlation: int, **more: Any) -> Event:
    """Return a kernel."""
    shape = {"grid": [8, 2, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}
    return gpu("kernel", name, start, length, correlation, **{**shape, **more})


def write(path: Path, events: list[Event] | str, **header: Any) -> Path:
    """Write a trace as an object; `events` may be the text of their array."""
    text = events if isinstance(events, str) else json.dumps(events, indent=2)
    members = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in ({"schemaVersion": 1} | header).items()
    )
    return write_text(path, "{\n" + members + f'"traceEvents": {text}\n}}\n')


def write_text(path: Path, text: str | bytes) -> Path:
    """Write text, packed where the name says so."""
    data = text.encode("utf-8", errors="surrogatepass") if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
