"""Selects the figures of docs/performance.md: each is a row of a result file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the page.

    `row` is the `what` of a row in results/BENCHMARK.json, or its end. `peer_row` is another row of
    that file to compare with, called `peer`; without it the row's own peer counts.
    """

    text: str
    benchmark: str
    row: str
    peer: str = ""
    peer_row: str = ""


# Pages below docs/performance/: title, and the benchmarks whose tables it has. Others are in "other".
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "recording": (
        "Annotating and recording",
        ("annotate", "c_api", "processes", "long_run", "many", "unasked", "culprits"),
    ),
    "python-and-cpu": (
        "Python and the CPU",
        (
            "torch_operators",
            "python_samplers",
            "python_sampling",
            "python_hooks",
            "python_free_threaded",
            "perf_sampling",
            "os_calls",
        ),
    ),
    "gpu": ("CUDA", ("gpu_launch", "cuda_records")),
    "kernels": (
        "Inside kernels",
        (
            "intrakernel_cuda",
            "intrakernel_cute",
            "intrakernel_triton",
            "intrakernel_numba",
            "intrakernel_static",
            "intrakernel_decode",
            "intrakernel_finish",
            "intrakernel_stats",
        ),
    ),
    "report": (
        "Writing the report",
        ("finish", "finish_cpu", "finish_cuda", "finish_during", "finish_memory", "lod"),
    ),
    "asking": (
        "Asking a report",
        ("nvtx_sum", "ask", "analyze", "cuda_stats", "cpu_stats", "trace_csv", "ranks", "many_ranks"),
    ),
    "files": ("Files of other tools", ("import_nsys", "import_kineto", "export", "export_nsys")),
    "viewer": ("The page", ("viewer",)),
    "other": ("Others", ()),
}

_RECORDED = "warplens (attached): "
_SAMPLERS = "1 thread, {}: time added to a step"
FIGURES: dict[str, list[Figure]] = {
    "Annotating a program": [
        Figure(
            "`with annotate('x')`, no tool",
            "annotate",
            "warplens (no tool): with annotate('x')",
            "PyPI nvtx",
            "nvtx (no tool): with annotate('x')",
        ),
        Figure(
            "`with annotate('x')`, recorded",
            "annotate",
            f"{_RECORDED}with annotate('x')",
            "PyPI nvtx",
            "nvtx (attached): with annotate('x')",
        ),
        Figure(
            "the same, beside PyTorch's `record_function`",
            "annotate",
            f"{_RECORDED}with annotate('x')",
            "PyTorch's CPU profiler",
            "torch: with record_function('x'), CPU profiler",
        ),
        Figure(
            "call of an annotated function, recorded",
            "annotate",
            f"{_RECORDED}@annotate f()",
            "PyPI nvtx",
            "nvtx (attached): @annotate f()",
        ),
        Figure("NVTX push and pop in C, recorded", "c_api", "nvtxRangePushA + nvtxRangePop, agent recording"),
    ],
    "Recording a program": [
        Figure("a Python loop, recorded by default", "unasked", "pure Python loop, default"),
        Figure("a NumPy loop, recorded by default", "unasked", "NumPy loop, default"),
        Figure("time added for each process of a tree", "many", "more for each process, by default"),
        Figure(
            "memory of a program in a container of 256 MiB, more than alone",
            "long_run",
            "… beyond the plain run",
        ),
    ],
    "Python and the CPU": [
        Figure(
            "Python stacks, 1000 a second: time added",
            "python_samplers",
            _SAMPLERS.format("warplens"),
            "py-spy",
            _SAMPLERS.format("py-spy"),
        ),
        Figure(
            "the same, beside Python 3.15",
            "python_samplers",
            _SAMPLERS.format("warplens"),
            "`profiling.sampling`",
            _SAMPLERS.format("profiling.sampling"),
        ),
        Figure(
            "error of the shares of functions",
            "python_samplers",
            "1 thread, warplens: distance of its shares from the program's own clocks",
            "py-spy",
            "1 thread, py-spy: distance of its shares from the program's own clocks",
        ),
        Figure(
            "impossible stacks",
            "python_samplers",
            "1 thread, warplens: impossible stacks",
            "py-spy",
            "1 thread, py-spy: impossible stacks",
        ),
        Figure(
            "native stacks, 250 a second: time added",
            "perf_sampling",
            "pure Python: more time, stacks by warplens at 250 Hz",
            "perf record -g",
            "pure Python: more time, perf record -g at 250 Hz",
        ),
        Figure(
            "`read` that is not recorded: time added (`-t osrt`)",
            "os_calls",
            "read of 1 byte of /dev/zero: more with wrappers, below the threshold",
        ),
    ],
    "CUDA": [
        Figure("launch of an empty kernel", "gpu_launch", "launch of an empty kernel, warplens"),
        Figure(
            "replay of a graph of 100 kernels", "gpu_launch", "replay of a graph of 100 kernels, warplens"
        ),
        Figure("launch in an eager PyTorch model", "gpu_launch", "launch in an eager model, warplens"),
        Figure(
            "training step",
            "gpu_launch",
            "training step, warplens",
            "torch.profiler, CPU and CUDA",
            "training step, torch.profiler, CPU and CUDA",
        ),
    ],
    "Inside kernels": [
        Figure("a region in CUDA C++", "intrakernel_cuda", "a region, globaltimer"),
        Figure("a region in CuTe DSL", "intrakernel_cute", "CuTe DSL: a region"),
        Figure("a region in Triton", "intrakernel_triton", "Triton: a region", "a scope of Proton"),
        Figure(
            "matrix product with 8 regions per tile",
            "intrakernel_cuda",
            "matrix product with 8 regions per tile",
        ),
    ],
    "The report": [
        Figure("CPU time to write one of 50 million ranges", "finish", "finish 5e7 ranges: CPU per range"),
        Figure("size of a range in the report", "finish", "finish 5e7 ranges: Parquet"),
        Figure("memory to write 10 million ranges", "finish_memory", "conversion of 1e7 ranges: own memory"),
        Figure("`stats -r nvtx_sum`, 50 million ranges", "nvtx_sum", "50,000,000 ranges, wall"),
        Figure("`stats`, all tables, 50 million rows", "ask", "all tables, 49,999,132 rows: wall"),
        Figure("`analyze`, all rules, 10 million rows", "analyze", "analyze, 10,000,866 rows: wall"),
    ],
    "Files of other tools": [
        Figure("trace of PyTorch, 4.3 million events: load", "import_kineto", "×20: load, wall"),
        Figure("the same: memory", "import_kineto", "×20: peak memory"),
        Figure(
            "SQLite export of nsys: CPU time for an event",
            "import_nsys",
            "import 4e6 events of nsys: CPU per event",
        ),
    ],
    "The page": [
        Figure(
            "1 million events: address to first pixels",
            "viewer",
            "0.997·10⁶ events, 200 tracks: navigation → first pixels",
        ),
        Figure(
            "100 million events: address to first pixels",
            "viewer",
            "100·10⁶ events, 200 tracks: navigation → first pixels",
        ),
        Figure(
            "100 million events: a frame of panning, 95th percentile",
            "viewer",
            "100·10⁶ events, 200 tracks: frame of panning and zooming, p95",
        ),
    ],
}
