"""The CUDA options: as they are typed, and their meaning.

Without click.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from warplens.cli.options.argument import Argument
from warplens.errors import UsageError
from warplens.recording.agent.cupti_search import existing_cupti
from warplens.recording.options.cuda import BACKTRACE_CATEGORIES, CudaOptions

ARGUMENTS = (
    Argument(
        ("--cuda-graph-trace",),
        "HOW",
        "node: the kernels and copies of CUDA graphs, one by one; graph: each launch as a whole, at less cost.  [default: node]",
    ),
    Argument(("--cuda-memory-usage",), "", "Record allocations and frees on GPUs."),
    Argument(
        ("--cuda-event-trace",),
        "WHETHER",
        "Record CUDA events, cudaEventRecord: true, false or auto (true).  [default: false]",
    ),
    Argument(
        ("--cuda-trace-all-apis",),
        "",
        "Also record CUDA calls that only query something, such as cudaGetLastError.",
    ),
    Argument(("--cuda-um-migrations",), "", "Record migrations of unified memory between host and GPUs."),
    Argument(
        ("--cuda-um-cpu-page-faults",), "", "Record faults of the host in unified memory, and migrations."
    ),
    Argument(("--cuda-um-gpu-page-faults",), "", "Record faults of GPUs in unified memory, and migrations."),
    Argument(
        ("--cudabacktrace",),
        "CALLS",
        "Record the stacks of long CUDA calls: all, kernel, memory, sync, other, separated by "
        "commas, each with an optional :NS threshold (1000); none.  [default: none]",
    ),
    Argument(
        ("--cuda-flush-interval",),
        "MS",
        "Time between two fetches of finished records; a killed program loses records of this time. "
        "0: fetch when CUPTI's buffers are full.  [default: 200]",
    ),
    Argument(("--cupti",), "PATH", "Use this libcupti, or the one in this folder."),
)
_LATER_GRAPH = ("host-and-device", "nvtx-precapture")
_DEFAULT_NS = 1000


def cuda_options(given: Mapping[str, str]) -> CudaOptions:
    """Return what `given` says, which maps long names to texts (`true` and `false` for flags).

    UsageError for nonsense.
    """
    base = CudaOptions()

    def on(name: str) -> bool:
        return given.get(name) == "true"

    return CudaOptions(
        all_apis=on("--cuda-trace-all-apis"),
        graph_nodes=_graph_nodes(given["--cuda-graph-trace"])
        if "--cuda-graph-trace" in given
        else base.graph_nodes,
        memory=on("--cuda-memory-usage"),
        um_migrations=on("--cuda-um-migrations"),
        um_cpu_faults=on("--cuda-um-cpu-page-faults"),
        um_gpu_faults=on("--cuda-um-gpu-page-faults"),
        events=_events(given.get("--cuda-event-trace", "false")),
        flush_ms=_milliseconds(given["--cuda-flush-interval"])
        if "--cuda-flush-interval" in given
        else base.flush_ms,
        backtrace=_backtrace(given.get("--cudabacktrace", "none")),
        cupti=existing_cupti(Path(given["--cupti"])) if "--cupti" in given else None,
    )


def not_yet(given: Mapping[str, str]) -> list[str]:
    """Return the parts of `given` that nsys knows and that have no effect here yet."""
    _, *more = given.get("--cuda-graph-trace", "node").lower().split(":")
    return [f"--cuda-graph-trace …:{part}" for part in more if part in _LATER_GRAPH]


def _graph_nodes(text: str) -> bool:
    how, *more = text.lower().split(":")
    if how not in ("graph", "node") or not set(more) <= {"host-only", "nvtx-live", *_LATER_GRAPH}:
        raise UsageError(f"--cuda-graph-trace {text}: write graph or node.")
    return how == "node"


def _events(text: str) -> bool:
    if text.lower() not in ("auto", "true", "false"):
        raise UsageError(f"--cuda-event-trace {text}: write true, false or auto.")
    return text.lower() != "false"


def _milliseconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > 3_600_000:
        raise UsageError(
            f"--cuda-flush-interval {text}: write a number of milliseconds, e.g. 1000; 0 to wait until buffers are full."
        )
    return int(text)


def _backtrace(text: str) -> tuple[tuple[str, int], ...]:
    if text.lower() in ("none", "false"):
        return ()
    chosen: dict[str, int] = {}
    for item in text.lower().split(","):
        name, colon, number = item.partition(":")
        names = BACKTRACE_CATEGORIES if name in ("all", "true") else (name,)
        if not set(names) <= set(BACKTRACE_CATEGORIES) or (
            colon and not (number.isascii() and number.isdecimal())
        ):
            raise UsageError(
                f"--cudabacktrace {text}: write all, kernel, memory, sync, other or none, with an "
                "optional minimum duration in ns: kernel:5000,sync."
            )
        for category in names:
            chosen[category] = int(number) if colon else _DEFAULT_NS
    return tuple((name, chosen[name]) for name in BACKTRACE_CATEGORIES if name in chosen)
