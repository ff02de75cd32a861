"""Makes PyTorch profiler traces of a given size: a real trace repeated, or a synthetic one of its shape."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "kineto" / "hta_df_index_resolver.json.gz"
_Event = dict[str, Any]
_STEPS, _LAYERS = 5, 2000  # of the synthetic one
_KEYS = ("correlation", "External id")


def source() -> str:
    """Say which trace is repeated."""
    return "a real trace" if _REAL.exists() else "a synthetic trace"


def write(path: Path, times: int) -> int:
    """Write a trace with `times` times the events, one behind the other in time, each with its own numbers; return how many there are."""
    header, events = _loaded()
    moving = [
        event
        for event in events
        if event.get("ph") != "M"
        and event.get("cat") != "Trace"
        and event.get("pid") not in ("Spans", "Traces")
    ]
    fixed = [event for event in events if event.get("ph") == "M"]
    first = min(event["ts"] for event in moving)
    length = max(event["ts"] + event.get("dur", 0) for event in moving) - first + 1000
    most = 1 + max(max(event.get("args", {}).get(key, 0) for key in _KEYS) for event in moving)
    pieces = [_template(event) for event in moving]
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            "{\n"
            + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in header.items())
            + ',\n"traceEvents": [\n'
        )
        file.write(",\n".join(json.dumps(event) for event in fixed))
        for number in range(times):
            for text, values in pieces:
                later = (values[0] + number * length, *(value + number * most for value in values[1:]))
                file.write(",\n" + text % later)
        file.write("\n]}\n")
    return len(fixed) + times * len(moving)


def _template(event: _Event) -> tuple[str, tuple[Any, ...]]:
    """Return an event as text with places for its time and its numbers, and those."""
    values: list[Any] = [event["ts"]]
    changed = dict(event, ts="\x00")
    if "id" in event:
        values.append(event["id"])
        changed["id"] = "\x01"
    args = dict(event.get("args", {}))
    for key in _KEYS:
        if key in args:
            args[key] = "\x01"
    if "args" in event:
        changed["args"] = args
    text = json.dumps(
        {
            "ph": changed.pop("ph"),
            "ts": changed.pop("ts"),
            **({"id": changed.pop("id")} if "id" in changed else {}),
            **changed,
        }
    )
    values += [event["args"][key] for key in args if key in _KEYS] if "args" in event else []
    return text.replace("%", "%%").replace('"\\u0000"', "%s").replace('"\\u0001"', "%d"), tuple(values)


def _loaded() -> tuple[dict[str, Any], list[_Event]]:
    if _REAL.exists():
        with gzip.open(_REAL) as file:
            whole = json.load(file)
        events = whole.pop("traceEvents")
        return whole, events
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "GPU"}],
        "distributedInfo": {"rank": 0},
    }, list(_synthetic())


def _synthetic() -> Iterator[_Event]:
    """Yield steps of operations that launch kernels, with arrows, a collective each, copies and allocations."""
    host = {"pid": 100, "tid": 100}
    now, number = 1_000_000_000_000, 1
    yield {"name": "process_name", "ph": "M", "ts": now, "pid": 100, "tid": 0, "args": {"name": "python"}}
    for step in range(_STEPS):
        begin = now
        for layer in range(_LAYERS):
            for name in ("aten::linear", "aten::addmm", "aten::relu", "aten::to"):
                yield {
                    "ph": "X",
                    "cat": "cpu_op",
                    "name": name,
                    **host,
                    "ts": now,
                    "dur": 40,
                    "args": {"External id": number, "Ev Idx": number},
                }
                yield {
                    "ph": "X",
                    "cat": "cuda_runtime",
                    "name": "cudaLaunchKernel",
                    **host,
                    "ts": now + 5,
                    "dur": 9,
                    "args": {"External id": number, "cbid": 211, "correlation": number},
                }
                yield {"ph": "s", "id": number, **host, "ts": now + 5, "cat": "ac2g", "name": "ac2g"}
                gpu = {"pid": 0, "tid": 7, "ts": now + 20}
                yield {"ph": "f", "id": number, **gpu, "cat": "ac2g", "name": "ac2g", "bp": "e"}
                collective = layer % 40 == 39 and name == "aten::relu"
                yield {
                    "ph": "X",
                    "cat": "kernel",
                    "name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
                    if collective
                    else f"{name}_kernel<float, {layer % 20}>",
                    **gpu,
                    "dur": 30,
                    "args": {
                        "External id": number,
                        "queued": 0,
                        "device": 0,
                        "context": 1,
                        "stream": 7,
                        "correlation": number,
                        "registers per thread": 32,
                        "shared memory": 0,
                        "blocks per SM": 1.2,
                        "warps per SM": 4.8,
                        "grid": [layer + 1, 1, 1],
                        "block": [128, 1, 1],
                        "est. achieved occupancy %": 9,
                    },
                }
                if name == "aten::to":
                    yield {
                        "ph": "i",
                        "cat": "cpu_instant_event",
                        "s": "t",
                        "name": "[memory]",
                        **host,
                        "ts": now + 2,
                        "args": {
                            "Ev Idx": number,
                            "Device Type": 1,
                            "Device Id": 0,
                            "Addr": number << 9,
                            "Bytes": 512,
                            "Total Allocated": 1 << 20,
                        },
                    }
                now, number = now + 50, number + 1
        yield {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{step}",
            **host,
            "ts": begin,
            "dur": now - begin,
            "args": {"External id": number},
        }
        now, number = now + 100, number + 1


if __name__ == "__main__":
    print(json.dumps({"events": write(Path(sys.argv[1]), int(sys.argv[2]))}))
