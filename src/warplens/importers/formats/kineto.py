"""PyTorch profiler (Kineto) traces, and Chrome traces of any program, as JSON or gzipped JSON.

## Made by
`torch.profiler` (`export_chrome_trace`, `tensorboard_trace_handler`) for CUDA, ROCm and XPU, with
the category names of all its versions; Proton; and any other program that writes the Trace Event
Format: an object with `traceEvents` or an array of events, which may lack its closing bracket. A
folder of such files, one per rank, becomes one report.

## What maps to what
| there | here |
|---|---|
| `cpu_op` | `nvtx_ranges` of the domain `pytorch`, `ops` with shapes, strides, values, sequence number and forward operation |
| `user_annotation`, `ProfilerStep#N` | `nvtx_ranges` |
| `python_function` | `python_calls`, and `frames`: the stacks of operations and API calls |
| `cuda_runtime`, `cuda_driver`, those of HIP and XPU | `cuda_api` |
| `kernel`, `gpu_memcpy`, `gpu_memset` | `kernels`, `memcpys`, `memsets`, each with its call by `correlation` |
| `cuda_sync`, `cuda_event`, `overhead` | `syncs`, `cuda_events`, `overhead` |
| arguments of NCCL (`Collective name`, …), `nccl:…` | `collectives` |
| `[memory]` | `tensor_memory` |
| `fwdbwd` | `forward` in `ops` |
| `deviceProperties`, `distributedInfo` | `devices`, the rank |
| other complete events, `B`/`E` | `nvtx_ranges` with their category; their arguments are `payloads` |
| `b`/`e`, `S`/`F` | `nvtx_ranges` that are start/end |
| instants, counters | `nvtx_marks`, `nvtx_counters`, `nvtx_counter_samples` |
| `process_name`, `thread_name` | `processes`, `threads` |

Times are those of the file, in ns. All GPU work belongs to the process of the file. A damaged file
is read as far as possible; `diagnostics` names the missing parts.

## What is dropped
`gpu_user_annotation` and the profiler's own marks, which warplens computes or does not need; flow
arrows, whose meaning is in the keys; arguments of known events other than those above; object
snapshots and memory dumps. Blocks of the file beside the events are never copied, because they may
contain environment variables. Shared memory of a launch is one number, stored as dynamic. Sizes
that ROCm does not report are 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warplens.importers.file_names import in_order
from warplens.importers.kineto import allocations, calls, collectives, counters, facts, ops, ranges, stacks
from warplens.importers.kineto.identity import rank_of
from warplens.importers.kineto.native import TraceParser
from warplens.importers.kineto.pieces import TextPieces
from warplens.importers.kineto.sniff import is_readable, is_trace, traces
from warplens.importers.kineto.trace import KinetoTrace
from warplens.importers.kineto.work import KinetoWork
from warplens.importers.rows import whole_window
from warplens.storage.memory import give_back

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".json", ".json.gz")
CONTENT = "Chrome trace"
DROPS: tuple[str, ...] = (
    "flow arrows, except the links that they make",
    "arguments of events that have no column",
    "blocks beside the events",
)


def recognises(path: Path) -> bool:
    """Say whether the file seems to be a Chrome trace, packed or not.

    Or the folder to hold such files.
    """
    return any(is_readable(file) for file in traces(path)) if path.is_dir() else is_trace(path)


def parts(source: Path) -> list[Path]:
    """Return the traces in a folder, those of lower ranks first."""
    return in_order(traces(source))


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises NotAReport for what is not a trace, ReportError for one without a whole event.
    """
    pieces = TextPieces(source)
    with TraceParser() as reader:
        for piece in pieces:
            if not reader.feed(piece):
                break
            progress("read", 0.6 * pieces.done)
        reader.finish()
        trace = KinetoTrace(reader, part)
        facts.check(source, trace, pieces)
        annotated = ranges.write(trace)
        give_back()
        progress("calls", 0.7)
        called = stacks.write(trace, annotated)
        give_back()
        operations = ops.write(trace, annotated, called)
        give_back()
        ranges.marks(trace)
        api = calls.write(trace, annotated, called)
        give_back()
        progress("GPU work", 0.85)
        work = KinetoWork(trace, api)
        kernels = work.kernels()
        give_back()
        collectives.write(trace, annotated, kernels, ops=operations)
        for take in (
            work.copies,
            work.memsets,
            work.waits,
            work.events,
            work.overhead,
            work.hardware,
            work.finish,
        ):
            take()
        allocations.write(trace, annotated)
        counters.write(trace)
        facts.counted(trace)
        part_facts = facts.facts(trace, source)
        trace.identity.write(rank_of(trace.header, source.name), part_facts.host)
        part.write(
            "capture_windows",
            whole_window(part.part, part_facts.host, begin=part_facts.origin, end=part_facts.end),
        )
        part.write("targets", [facts.target(part_facts)])
        part.write("diagnostics", [{**row, "process": trace.identity.main} for row in trace.rows])
        progress("write", 1.0)
    return part_facts
