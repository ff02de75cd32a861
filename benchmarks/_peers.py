"""Other Python libraries that mark ranges, if installed, each timed in a separate process beside R.

They come from the extra `bench-peers`: `make peers` puts them into build/peers; WARPLENS_PEERS names more environments.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _floor import LOOP, STATEMENTS, R, floor_names, loop
from harness import interleave

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Peer:
    """A group of statements; `marker` is a file of the site-packages folder that shows that it is installed."""

    name: str
    marker: str
    statements: dict[str, str]
    tool: bool = False  # speaks NVTX: measured with and without our agent


PEERS = (
    Peer(
        "torch",
        "torch/version.py",
        {
            "with record_function('x'), no profiler": "with record_function('x'): pass",
            "with prebuilt _RecordFunctionFast, no profiler": "with fast: pass",
        },
    ),
    Peer(
        "torch-profiler",
        "torch/version.py",
        {
            "with record_function('x'), CPU profiler": "with record_function('x'): pass",
            "with prebuilt _RecordFunctionFast, CPU profiler": "with fast: pass",
        },
    ),
    Peer(
        "torch-nvtx",
        "torch/lib/libtorch_cuda.so",
        {
            "torch.cuda.nvtx.range_push('x'); range_pop()": "push('x'); pop()",
            "with torch.cuda.nvtx.range('x')": "with torch_range('x'): pass",
            "torch.cuda.nvtx.mark('x')": "mark('x')",
            "torch._C._nvtx.rangePushA('x'); rangePop()": "raw_push('x'); raw_pop()",
        },
        tool=True,
    ),
    Peer(
        "cupy",
        "cupy/__init__.py",
        {
            "cupy.cuda.nvtx.RangePush('x'); RangePop()": "push('x'); pop()",
            "with cupyx.profiler.time_range('x')": "with time_range('x'): pass",
        },
        tool=True,
    ),
    Peer(
        "interop",
        "nvidia/*/lib/libnvtx3interop.so*",
        {"ctypes nvtxRangePushA(b'x'); nvtxRangePop()": "push(b'x'); pop()"},
        tool=True,
    ),
    Peer("viztracer", "viztracer/__init__.py", {"with log_event('x'), stopped": "with log_event('x'): pass"}),
    Peer(
        "viztracer-on",
        "viztracer/__init__.py",
        {
            "with log_event('x'), running": "with log_event('x'): pass",
            "log_instant('x'), running": "log_instant('x')",
        },
    ),
    Peer("viztracer-full", "viztracer/__init__.py", {"plain f() under full tracing": "g()"}),
    Peer(
        "opentelemetry",
        "opentelemetry/sdk/trace/__init__.py",
        {
            "with API start_as_current_span('x')": "with api.start_as_current_span('x'): pass",
            "with SDK start_as_current_span('x'), no exporter": "with sdk.start_as_current_span('x'): pass",
        },
    ),
    Peer(
        "jax",
        "jax/profiler.py",
        {
            "with TraceAnnotation('x'), no trace": "with annotation('x'): pass",
            "@annotate_function f(), no trace": "f()",
        },
    ),
)


def environments() -> Iterator[tuple[str, Path]]:
    """Interpreters that may have peers, each with its site-packages folder."""
    folders = [Path(sys.prefix), ROOT / "build" / "peers"]
    folders += [Path(part) for part in os.environ.get("WARPLENS_PEERS", "").split(os.pathsep) if part]
    for folder in folders:
        for site in folder.glob("lib/python*/site-packages"):
            yield str(folder / "bin" / "python"), site


def find(peer: Peer) -> tuple[str, Path] | None:
    """The interpreter that has it, and the file that shows it."""
    for python, site in environments():
        for found in site.glob(peer.marker):
            return python, found
    return None


def _torch(known: dict[str, Any]) -> None:
    torch = importlib.import_module("torch")
    known["record_function"] = torch.profiler.record_function
    known["fast"] = torch._C._profiler._RecordFunctionFast("x")


def _torch_profiler(known: dict[str, Any]) -> Callable[[], AbstractContextManager[Any]]:
    _torch(known)
    profiler = importlib.import_module("torch.profiler")
    return lambda: profiler.profile(activities=[profiler.ProfilerActivity.CPU])


def _torch_nvtx(known: dict[str, Any]) -> None:
    torch = importlib.import_module("torch")
    nvtx, raw = torch.cuda.nvtx, torch._C._nvtx
    known |= {"push": nvtx.range_push, "pop": nvtx.range_pop, "mark": nvtx.mark, "torch_range": nvtx.range}
    known |= {"raw_push": raw.rangePushA, "raw_pop": raw.rangePop}


def _cupy(known: dict[str, Any]) -> None:
    nvtx = importlib.import_module("cupy.cuda.nvtx")
    known |= {
        "push": nvtx.RangePush,
        "pop": nvtx.RangePop,
        "time_range": importlib.import_module("cupyx.profiler").time_range,
    }


def _interop(known: dict[str, Any]) -> None:
    import ctypes

    library = ctypes.CDLL(sys.argv[4])
    library.nvtxRangePushA.argtypes = [ctypes.c_char_p]
    known |= {"push": library.nvtxRangePushA, "pop": library.nvtxRangePop}


def _viztracer(known: dict[str, Any], **options: Any) -> Any:
    tracer = importlib.import_module("viztracer").VizTracer(tracer_entries=200_000, verbose=0, **options)
    known |= {"log_event": tracer.log_event, "log_instant": tracer.log_instant}
    return tracer


class _Tracing:
    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def __enter__(self) -> None:
        self._tracer.start()

    def __exit__(self, *_: object) -> None:
        self._tracer.stop()
        self._tracer.clear()


def _opentelemetry(known: dict[str, Any]) -> None:
    trace = importlib.import_module("opentelemetry.trace")
    sdk = importlib.import_module("opentelemetry.sdk.trace")
    known |= {
        "api": trace.NoOpTracerProvider().get_tracer("bench"),
        "sdk": sdk.TracerProvider().get_tracer("bench"),
    }


def _jax(known: dict[str, Any]) -> None:
    profiler = importlib.import_module("jax").profiler
    known |= {"annotation": profiler.TraceAnnotation, "f": profiler.annotate_function(known["g"])}


def _around(name: str, known: dict[str, Any]) -> Callable[[], AbstractContextManager[Any]]:
    """Make the names of a peer; return what is to be open while it is timed."""
    if name == "torch-profiler":
        return _torch_profiler(known)
    if name == "viztracer":
        _viztracer(known, log_async=False, max_stack_depth=0)
    elif name == "viztracer-on":
        tracer = _viztracer(known, log_async=False, max_stack_depth=0)
        return lambda: _Tracing(tracer)
    elif name == "viztracer-full":
        tracer = _viztracer(known)
        return lambda: _Tracing(tracer)
    else:
        makers: dict[str, Callable[[dict[str, Any]], None]] = {
            "torch": _torch,
            "torch-nvtx": _torch_nvtx,
            "cupy": _cupy,
            "interop": _interop,
            "opentelemetry": _opentelemetry,
            "jax": _jax,
        }
        makers[name](known)
    return nullcontext


def main() -> None:
    """One peer, in the process started for it: `_peers.py NAME FLOOR quick|full MARKER`."""
    name, floor, how = sys.argv[1:4]
    known = floor_names(floor)
    around = _around(name, known)
    (peer,) = (peer for peer in PEERS if peer.name == name)

    def within(function: Callable[[int], object]) -> Callable[[int], float]:
        """The time per call inside of what is open around it, which opens and closes outside of the time."""

        def measure(count: int) -> float:
            with around():
                before = time.thread_time_ns()
                function(count)
                return float(time.thread_time_ns() - before)

        return measure

    candidates = {
        LOOP: loop(STATEMENTS[LOOP], known),
        R: loop(STATEMENTS[R], known),
        "plain f()": loop("g()", known),
    }
    theirs = {what: loop(statement, known) for what, statement in peer.statements.items()}
    calls, rounds = (1000, 5) if how == "quick" else (5000, 21)
    if around is nullcontext:
        timings = interleave(candidates | theirs, calls=calls, rounds=rounds)
        samples = {what: list(timing.rounds) for what, timing in timings.items()}
    else:  # opening and closing a profiler costs more than what it records
        samples = {what: [] for what in (*candidates, *theirs)}
        inside = {what: within(function) for what, function in theirs.items()}
        for _ in range(rounds):
            for what, timing in interleave(candidates, calls=calls, rounds=1).items():
                samples[what] += timing.rounds
            for what, measure in inside.items():
                samples[what].append(measure(calls) / calls)
    json.dump(samples, sys.stdout)


if __name__ == "__main__":
    main()
