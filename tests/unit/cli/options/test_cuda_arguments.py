"""What of CUDA to record, as it is typed; and what the agents are told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.cli.options.arguments import split
from warplens.cli.options.capture_arguments import NAMES, capture_options
from warplens.cli.options.cuda_arguments import not_yet
from warplens.cli.recording import chosen_traces
from warplens.errors import UsageError
from warplens.recording.agent.library import CudaSettings
from warplens.recording.options.cuda import CudaOptions
from warplens.recording.options.cuda_settings import (
    ALL_APIS,
    EVENTS,
    GRAPH_NODES,
    MEMORY,
    TOGGLE,
    TRACE,
    UM,
    UM_CPU_FAULTS,
    UM_GPU_FAULTS,
)
from warplens.recording.options.settings import settings


def _given(text: str) -> dict[str, str]:
    arguments = split([*text.split(), "prog"], NAMES)
    assert arguments.command == ["prog"]
    return dict(option.split("=", 1) for option in arguments.options)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("--cuda-graph-trace node", {}),
        ("--cuda-graph-trace=graph", {"graph_nodes": False}),
        ("--cuda-graph-trace=graph:host-only:nvtx-live", {"graph_nodes": False}),
        ("--cuda-memory-usage true", {"memory": True}),
        ("--cuda-memory-usage", {"memory": True}),
        ("--cuda-memory-usage=false", {}),
        ("--cuda-trace-all-apis=true", {"all_apis": True}),
        ("--cuda-um-migrations", {"um_migrations": True}),
        (
            "--cuda-um-cpu-page-faults true --cuda-um-gpu-page-faults=true",
            {"um_cpu_faults": True, "um_gpu_faults": True},
        ),
        ("--cuda-event-trace=false", {}),
        ("--cuda-event-trace=auto", {"events": True}),
        ("--cuda-event-trace TRUE", {"events": True}),
        ("--cuda-flush-interval 0", {"flush_ms": 0}),
        ("--cuda-flush-interval=10000", {"flush_ms": 10000}),
        ("--cudabacktrace none", {}),
        (
            "--cudabacktrace=true",
            {"backtrace": tuple((name, 1000) for name in ("kernel", "memory", "sync", "other"))},
        ),
        (
            "--cudabacktrace=all:5",
            {"backtrace": tuple((name, 5) for name in ("kernel", "memory", "sync", "other"))},
        ),
        ("--cudabacktrace=sync,kernel:20000", {"backtrace": (("kernel", 20000), ("sync", 1000))}),
    ],
)
def test_cuda_arguments_become_options(text: str, values: dict[str, object]) -> None:
    assert capture_options(_given(text)).cuda == CudaOptions(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--cuda-graph-trace all", "write graph or node"),
        ("--cuda-graph-trace node:x", "write graph or node"),
        ("--cuda-event-trace maybe", "write true, false or auto"),
        ("--cuda-flush-interval soon", "a number of milliseconds"),
        ("--cuda-flush-interval -1", "a number of milliseconds"),
        ("--cuda-flush-interval 99999999", "a number of milliseconds"),
        ("--cudabacktrace=kernels", "--cudabacktrace kernels: write all, kernel"),
        ("--cudabacktrace=kernel:1us", "an optional minimum duration in ns"),
        ("--cudabacktrace=kernel:", "an optional minimum duration in ns"),
        ("--cudabacktrace=kernel,none", "write all, kernel"),
        ("--cupti /no/such/place", "--cupti /no/such/place: there is no libcupti"),
    ],
)
def test_nonsense_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        capture_options(_given(text))
    assert said in str(caught.value)


def test_cupti_is_a_file_or_the_newest_of_a_folder(tmp_path: Path) -> None:
    for name in ("libcupti.so.9.2", "libcupti.so.11.8", "libcupti_static.so", "libcupti.so"):
        (tmp_path / name).touch()
    assert capture_options(_given(f"--cupti={tmp_path}")).cuda.cupti == tmp_path / "libcupti.so.11.8"
    assert capture_options(_given(f"--cupti={tmp_path}/libcupti.so")).cuda.cupti == tmp_path / "libcupti.so"


def test_options_without_effect_are_named() -> None:
    assert not_yet(_given("--cudabacktrace=all --cuda-graph-trace=node:host-only")) == []
    assert not_yet(_given("--cuda-graph-trace=node:host-and-device:nvtx-precapture")) == [
        "--cuda-graph-trace …:host-and-device",
        "--cuda-graph-trace …:nvtx-precapture",
    ]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", GRAPH_NODES),
        ("--cuda-graph-trace=graph", 0),
        (
            "--cuda-memory-usage --cuda-trace-all-apis --cuda-event-trace=true",
            GRAPH_NODES | MEMORY | ALL_APIS | EVENTS,
        ),
        ("--cuda-um-migrations", GRAPH_NODES | UM),
        ("--cuda-um-cpu-page-faults", GRAPH_NODES | UM | UM_CPU_FAULTS),
        ("--cuda-um-gpu-page-faults", GRAPH_NODES | UM | UM_GPU_FAULTS),
        # windows that open later: CUPTI rests until then
        ("-c cudaProfilerApi", GRAPH_NODES | TOGGLE),
        ("-c nvtx -p x", GRAPH_NODES | TOGGLE),
        ("-c cudaProfilerApi --capture-range-end none", GRAPH_NODES | TOGGLE),
        ("-c cudaProfilerApi --capture-range-end stop-shutdown", GRAPH_NODES | TOGGLE),
        ("-c cudaProfilerApi --capture-range-end repeat-shutdown:1", GRAPH_NODES | TOGGLE),
        ("--delay 3", GRAPH_NODES | TOGGLE),
        ("-c cudaProfilerApi --capture-range-end repeat:2", GRAPH_NODES | TOGGLE),
        ("-Y", GRAPH_NODES | TOGGLE),
        ("--keep-last 10 --delay 1", GRAPH_NODES | TOGGLE),
        ("--keep-last 10", GRAPH_NODES),
        ("--duration 10", GRAPH_NODES),
    ],
)
def test_the_agents_are_told(text: str, flags: int) -> None:
    assert settings(capture_options(_given(text))).cuda == CudaSettings(flags=TRACE | flags)


def test_the_agents_are_told_which_calls_are_long() -> None:
    told = settings(capture_options(_given("--cudabacktrace=sync:7,kernel --cuda-flush-interval=5"))).cuda
    assert (told.flush_ms, told.backtrace, told.backtrace_ns) == (5, 1 | 4, (1000, 0, 7, 0))


def test_the_agents_leave_cuda_alone_where_it_is_not_traced() -> None:
    from dataclasses import replace

    assert settings(replace(capture_options(_given("--cuda-memory-usage")), trace=("nvtx",))).cuda.flags == 0


def test_the_software_trace_of_nsys_is_ours() -> None:
    assert chosen_traces("cuda-sw,nvtx,cuda,openmp") == (("cuda", "nvtx"), ["openmp"])


def test_the_hardware_trace_of_nsys_falls_back_to_ours() -> None:
    assert chosen_traces("cuda-hw") == (("cuda",), ["cuda-hw"])
    assert chosen_traces("cuda-hw,cuda-sw") == (("cuda",), ["cuda-hw"])
