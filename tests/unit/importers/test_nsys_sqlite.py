"""The importer `nsys_sqlite` takes over every table that has a place, from files of every version."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.nsys_export import (
    ERAS,
    SECRET,
    Export,
    Version,
    call,
    global_id,
    kernel,
    nvtx,
    settings,
    work,
)
from tests.unit.importers.story import PUSH_POP, START_END, tell
from warplens.importers.importing import import_file
from warplens.importers.nsys import ranges
from warplens.report import Report
from warplens.report import open as open_report

every_era = pytest.mark.parametrize("era", ERAS, ids=[f"{major}.{minor}" for major, minor in ERAS])
SECOND = 1 << 32


def imported(export: Export, folder: Path) -> Report:
    import_file(export.write(folder / "run.sqlite"), folder / "run.warplens")
    return open_report(folder / "run.warplens")


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Version], Report]:
    """Return the report of the story as a file of some version tells it; each is imported once."""

    @cache
    def story(era: Version) -> Report:
        return imported(tell(Export(era)), tmp_path_factory.mktemp("story"))

    return story


def rows(report: Report, table: str, *columns: str) -> list[Any]:
    """Return the rows of a table: of one column its values, of several tuples."""
    found = [tuple(row.values()) for row in report.table(table, list(columns)).to_pylist()]
    return [row[0] for row in found] if len(columns) == 1 else found


@pytest.mark.slow
@every_era
def test_calls_and_what_they_launched(era: Version, stories: Callable[[Version], Report]) -> None:
    report = stories(era)
    assert rows(report, "cuda_api", "id", "name", "api", "result", "range") == [
        (0, "cuMemAlloc_v2", "driver", 2, None),
        (1, "cudaLaunchKernel", "runtime", 0, 3),
        (2, "cudaMemcpyAsync", "runtime", 0, 0),
        (3, "cudaGraphLaunch", "runtime", 0, 4),
        (4, "cudaStreamSynchronize", "runtime", 0, 4),
        (5, "cudaEventRecord", "runtime", 0, 4),
        (6, "cudaEventRecord", "runtime", 0, 4),
        (SECOND, "cudaLaunchKernel", "runtime", 0, None),
    ]
    assert rows(report, "kernels", "id", "name", "start", "end", "api") == [
        (0, "lost", 10, 20, None),
        (1, "gemm", 320, 380, 1),
        (SECOND, "relu", 400, 450, SECOND),
    ]
    first = report.table("kernels").to_pylist()[1]
    assert first["demangled"] == "void ns::gemm<int>(int)"
    assert first["mangled"] == ("_ZN2nsgemm" if era >= (2, 9) else None)
    assert [first[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz"] == [8, 2, 1, 128, 1, 1]
    assert first["cluster_x"] == (2 if era >= (3, 24) else None)
    memory = [
        first[name]
        for name in (
            "registers",
            "static_shared",
            "dynamic_shared",
            "shared_executed",
            "local_total",
            "graph_node",
        )
    ]
    assert memory == [32, 64, 1024, 2048, 4096, 5]
    assert first["launch_type"] == "regular"
    assert rows(
        report,
        "memcpys",
        "kind",
        "bytes",
        "source_kind",
        "destination_kind",
        "destination_device",
        "copies",
        "api",
    ) == [
        ("Host-to-Device", 4096, "Pageable", "Device", None, 3 if era >= (3, 17) else None, 2),
        ("Peer-to-Peer", 32, "Device", "Device", 1, None, None),
    ]
    assert rows(report, "memsets", "value", "bytes", "memory_kind", "api", "correlation") == [
        (255, 128, "Device", 2, 13)
    ]
    assert rows(report, "graphs", "graph", "graph_exec", "api") == ([(4, 5, 3)] if era >= (2, 9) else [])


@every_era
def test_waits_events_and_memory(era: Version, stories: Callable[[Version], Report]) -> None:
    report = stories(era)
    assert rows(report, "syncs", "kind", "event", "event_sync", "api") == [
        ("Stream", None, None, 4),
        ("Event", 3, 1 if era >= (3, 4) else None, None),
    ]
    # Where nobody said when the GPU came to it (before 3.11 never), it is when the call began.
    assert rows(report, "cuda_events", "start", "event", "api") == [
        (815 if era >= (3, 11) else 810, 3, 5),
        (840, 3, 6),
    ]
    memory = rows(report, "gpu_memory", "start", "operation", "address", "bytes", "total")
    assert memory[-4:] == [
        (60, "allocate", 0x1000, 512, 512),
        (61, "allocate", 0x2000, 256, 768),
        (62, "free", 0x1000, 512, 256),
        (63, "free", 0x9000, 64, 256),  # of before the recording: it never was in the total
    ]
    assert memory[:-4] == ([(59, "pool create", 0x5000, 0, None)] if era >= (3, 0) else [])
    address = (1 << 64) - 4096 if era >= (2, 9) else 0
    assert rows(
        report, "um_events", "kind", "device", "destination", "address", "bytes", "faults", "cause"
    ) == [
        ("HtoD", 0, 0, address, 65536, None, "coherence"),
        ("CPU page fault", None, None, 0x7000, None, 1, None),
        ("GPU page fault", 0, None, 0x8000, None, 4, "write"),
    ]
    expected = ["Buffer flush" if era >= (3, 24) else "Instrumentation"]
    expected += ["Module loading"] if era >= (3, 11) else []
    expected += ["JIT compile"] if era >= (3, 20) else []
    assert rows(report, "overhead", "kind") == expected


@every_era
def test_annotations(era: Version, stories: Callable[[Version], Report]) -> None:
    report = stories(era)
    assert rows(
        report, "nvtx_ranges", "message", "style", "start", "end", "depth", "parent", "domain", "category"
    ) == [
        ("step", "PushPop", 100, 900, 0, None, None, None),
        ("a", "StartEnd", 150, 350, 0, None, None, None),
        ("b", "StartEnd", 160, 360, 1, None, None, None),
        ("load", "PushPop", 200, 400, 1, 0, "io", "disk"),
        ("open", "PushPop", 500, 900, 1, 0, None, None),
    ]
    assert rows(report, "nvtx_ranges", "unfinished") == [False, False, False, False, True]
    assert rows(report, "nvtx_ranges", "payload_int", "payload_float")[3:] == [(2**63 - 1, None), (None, 2.5)]
    assert rows(report, "nvtx_ranges", "end_thread")[1] == rows(report, "threads", "thread")[1]
    assert rows(report, "nvtx_ranges", "color")[0] == 0xFF00FF00
    assert rows(report, "nvtx_marks", "message", "start", "domain", "payload_int") == [
        ("here", 170, "io", -4)
    ]
    assert rows(report, "payloads", "event_type", "event", "type", "json") == [
        ("mark", 0, "point" if era >= (3, 28) else "json", '{"x": 1}')
    ]
    layouts = [json.loads(text) for text in rows(report, "nvtx_schemas", "definition")]
    assert [layout["entries"] for layout in layouts] == (
        [[{"name": "x", "type": 6}]] if era >= (3, 4) else []
    )


@every_era
def test_machines_processes_and_devices(era: Version, stories: Callable[[Version], Report]) -> None:
    report = stories(era)
    command = "/usr/bin/python3 train.py 'two words'"
    assert rows(report, "processes", "pid", "primary", "host")[0] == (100, True, "gpu-box")
    assert rows(report, "processes", "command")[0] == command
    assert rows(report, "processes", "rank") == [None, 3 if era >= (3, 0) else None]
    assert rows(report, "threads", "tid", "name") == [(100, "the main one"), (105, "worker"), (101, None)]
    known = era >= (2, 9)
    assert rows(report, "devices", "device", "name", "multiprocessors", "uuid")[0] == (
        (0, "NVIDIA H100", 132, "GPU-abc") if known else (0, "NVIDIA H100", 132, None)
    )
    assert rows(report, "contexts", "process", "context", "device", "null_stream", "name") == [
        (0, 1, 0, 7, "ctx"),
        (1, 1, 0, None, None),
    ]
    assert rows(report, "streams", "stream", "priority", "kind", "name") == [
        (7, 0, "null", None),
        (8, -5, "non-blocking", "compute"),
        (7, None, None, None),
    ]
    assert rows(report, "gpu_metrics", "start", "metric", "unit", "value") == [
        (200, "SMs Active", "%", 96.0),
        (200, "GPC Clock Frequency", "MHz", 1410.0),
        (300, "SMs Active", "%", 97.0),
    ]
    assert report.manifests[0].realtime_offset == 1_700_000_000_000_000_000
    assert (report.origin, report.end) == (0, 900)
    assert rows(report, "targets", "os", "cpus") == [("Ubuntu", 18)]
    told = rows(report, "diagnostics", "severity", "code", "message")
    assert ("warning", "nsys", "Careful.") in told
    assert (
        "info",
        "no-call",
        "kernels whose launch is not in the file: their ranges are unknown",
    ) in told
    assert ("info", "not-imported", "the rows of the table ProcessStreams have no place in a report") in told
    assert len(told) == 4 + (era >= (2, 9))  # and one for the files of the analysis
    assert [name for name, source in report.manifests[0].sources.items() if source["on"]] == [
        "cuda",
        "nvtx",
        "osrt",
        "gpu_metrics",
    ]


@pytest.mark.slow
@every_era
def test_environments_and_output_stay_behind(era: Version, stories: Callable[[Version], Report]) -> None:
    report = stories(era)
    everything = json.dumps([report.table(name).to_pylist() for name in report.tables], default=repr)
    assert SECRET not in everything
    assert not [
        path for path in report.path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_a_cut_piece_begins_with_its_first_event(tmp_path: Path) -> None:
    export = Export()
    export.add("META_DATA_EXPORT", name="EXPORT_PARAM_TIMES_TO_EXPORT", value="5s/6s")
    kernel(export, "k", 5_000_000_000, 5_000_000_100, 1)
    report = imported(export, tmp_path)
    assert (report.origin, report.end) == (5_000_000_000, 5_000_000_100)


def test_events_before_the_session_are_kept(tmp_path: Path) -> None:
    export = Export()
    call(export, "cuInit", -500, 20, 1)
    report = imported(export, tmp_path)
    assert (report.origin, report.end) == (-500, 20)


def test_the_shell_that_was_launched_is_not_taken_for_the_program(tmp_path: Path) -> None:
    export = Export()
    settings(export, {"PROCESS_0:COMMAND": "bash", "PROCESS_0:ARGUMENT_0": "-c"})
    export.add("PROCESSES", globalPid=global_id(100), pid=100, name="python3")
    call(export, "cuInit", 1, 2, 1)
    report = imported(export, tmp_path)
    assert rows(report, "processes", "command", "primary") == [("python3", True)]
    assert report.manifests[0].command == ["bash", "-c"]


@pytest.mark.slow
def test_ranges_of_threads_enclose_their_own_calls(tmp_path: Path) -> None:
    export = Export()
    for tid in (100, 105):
        for depth in range(50):  # nested, all but the outermost over before the call
            nvtx(
                export,
                PUSH_POP,
                depth,
                1000 - depth if depth == 0 else 500 - depth,
                (100, tid),
                text=f"{tid}-{depth}",
            )
    nvtx(export, START_END, 0, 2000, (100, 100), text="not one of the thread")
    for number, (tid, at) in enumerate(((100, 499), (100, 498), (105, 600), (105, 1000), (106, 10))):
        call(export, "cudaFree", at, at + 1, number + 1, (100, tid))
    report = imported(export, tmp_path)
    names = report.sql(
        "SELECT correlation, message FROM cuda_api LEFT JOIN nvtx_ranges ON cuda_api.range = "
        "nvtx_ranges.id ORDER BY correlation"
    ).to_pylist()
    assert [row["message"] for row in names] == ["100-0", "100-1", "105-0", None, None]


@pytest.mark.slow
def test_large_tables_are_read_process_by_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = tell(Export())
    for number in range(20):
        nvtx(export, PUSH_POP, 40 + number, 50 + number, (101, 101 + number % 2), text=f"other {number}")
    (tmp_path / "parts").mkdir()
    together = imported(export, tmp_path)
    monkeypatch.setattr(ranges, "_MANY", 1)
    apart = imported(export, tmp_path / "parts")
    for table in ("nvtx_ranges", "nvtx_marks", "payloads", "cuda_api"):
        assert apart.table(table).to_pylist() == together.table(table).to_pylist()


def test_an_empty_recording_is_a_report(tmp_path: Path) -> None:
    report = imported(Export(), tmp_path)
    assert not any(report.tables[name] for name in ("processes", "kernels", "cuda_api", "nvtx_ranges"))
    assert (report.origin, report.end) == (0, 0)


@pytest.mark.slow
def test_correlations_are_those_of_the_process(tmp_path: Path) -> None:
    export = Export()
    for pid in range(200, 230):
        call(export, "cudaLaunchKernel_v7000", pid, pid + 1, 7, (pid, pid))
        kernel(export, f"k{pid}", pid + 5, pid + 6, 7, pid=pid)
        work("MEMCPY", export, pid + 7, pid + 8, 8, pid=pid, bytes=1, copyKind=1)
    report = imported(export, tmp_path)
    joined = report.sql(
        "SELECT count(*) AS n FROM kernels k JOIN cuda_api a ON k.api = a.id AND k.process = "
        "a.process AND a.start + 5 = k.start"
    )
    assert joined.to_pylist() == [{"n": 30}]
    assert rows(report, "memcpys", "api") == [None] * 30
