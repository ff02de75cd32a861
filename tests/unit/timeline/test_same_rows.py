"""The page, the terminal and the exporters show the same rows of a report, but for the differences that stand here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.reports import cpu_story
from tests.support.reports.real_recordings import unpack
from tests.support.thorough import few
from warplens.analysis.cpu.occupancy import cpu_threads
from warplens.analysis.gpu.occupancy import api_threads, gpu_rows
from warplens.analysis.occupancy import tracks
from warplens.cli.timeline.cpu import LAYERS
from warplens.convert.finish import finish
from warplens.exporters.cpu_events import CpuTracks
from warplens.exporters.cuda_tracks import CudaTracks
from warplens.exporters.tracks import Tracks
from warplens.report import Report
from warplens.testing.timeline import timeline
from warplens.timeline.entities import Entities
from warplens.timeline.kinds import KINDS
from warplens.timeline.lanes import Lanes
from warplens.timeline.tree import Row, RowTree

GOLDEN = Path(__file__).parents[2] / "golden" / "gpu"
NAMES = (
    "training",
    "trainer",
    "libs",
    "transfer",
    "slow_loader",
    "sync_in_loop",
    "pageable_copies",
    "pipeline_1_stage",
)
PICTURE = """
main          |[step                                            ][step                     ]
main          | [forward                     ][backward        ]       !mark
main#task     |      {in a task  }
p1/main       |  {start and end   }
main:api      |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )(cudaLaunchKernel#3 ) (cudaFree )
loader:api    |     (cudaMallocHost     )
gpu0.7        |       (gemm#1   )                        (softmax#3               )(gemm              )
gpu0.13       |                              (HtoD#2        )(memset   )         (DtoH      ) (all_reduce          )
gpu1.7        |   (gemm   )  (graph   )
p1/gpu0.7     |     (fill )
"""
Shown = set[tuple[Any, ...]]
WORK = ("kernels", "memcpys", "memsets", "graphs")
OF_PROCESS = ("syncs", "um_events", "collectives")

# What somebody does not show as rows, and why.
NOT_ON_THE_PAGE = {
    "cuda_events",  # instants that say nothing of how long anything took
    "file_access",  # its calls are among those of the C library
}
NOT_IN_THE_TERMINAL = {
    *(
        "nvtx_marks",
        "nvtx_gpu_projection",
    ),  # marks are in the row of their thread; the GPU's ranges are of the page alone
    *(
        "overhead",
        "syncs",
        "collectives",
        "um_events",
        "mpi_events",
        "openmp_events",
        "openacc_events",
        "syscalls",
    ),  # room for few
    *("cuda_events", "file_access"),
}
NOT_IN_EXPORTS = {
    *("nvtx_marks", "nvtx_gpu_projection"),  # marks are in the row of their thread
    *("samples", "task_samples"),  # formats have their own records of stacks
    "memory_rows",  # copies by direction are below their streams, not below their GPU
}


def page(report: Report) -> Shown:
    """Layer and owner of each row of the tree. Its tasks share a row, and a copy is in two rows: on its stream, and by its direction."""
    tree = RowTree(Entities.of(report))
    lanes = Lanes.open(report.stored, None)
    for lane in lanes.all:
        tree.add(lane)
    return {_owned(row) for row in tree.root.walk() if row.source is not None}


def _owned(row: Row) -> tuple[Any, ...]:
    layer, key = row.source.layer, row.source.key
    names = {"memory_rows": ("process", "device", "kind")}
    if layer == "nvtx_ranges":
        return (layer, key["process"], key.get("thread"), key["kind"])
    if layer in WORK:
        return (layer, *(key.get(name) for name in ("process", "context", "stream")))
    if layer in OF_PROCESS:
        return (layer, key["process"])
    return (layer, *(key.get(name) for name in names.get(layer, ("process", "thread"))))


def terminal(report: Report) -> Shown:
    """Layer and owner of what the terminal has rows for: graphs are in the row of their stream, memsets in one of their GPU."""
    window = report.span
    shown: Shown = (
        {("cuda_api", *thread) for thread in api_threads(report, window)}
        if report.tables["cuda_api"]
        else set()
    )
    for thread, seen in cpu_threads(report, window).items():
        shown |= {(LAYERS[name.split()[0]], *thread) for name in seen.lanes}
    for row in gpu_rows(report, window):
        stream, copies = (
            ("stream", row.process, row.context, row.stream),
            ("memory_rows", row.process, row.device, row.what),
        )
        shown.add(
            stream
            if row.what is None
            else ("memsets", row.process, row.device)
            if row.what == "Memset"
            else copies
        )
    for row in tracks(report, window).to_pylist():
        kind = (
            "tasks" if row["task"] is not None else "push_pop" if row["thread"] is not None else "start_end"
        )
        shown.add(("nvtx_ranges", row["process"], row["thread"], kind))
    return shown


def exported(report: Report) -> Shown:
    """Layer and owner of the rows of Chrome and Perfetto files. Waits, collectives and the like have one row of their process."""
    tracks_ = Tracks.of(report)
    shown: Shown = set()
    for what, process, *place in (
        *CudaTracks.of(report, tracks_)._found,
        *CpuTracks.of(report, tracks_)._found,
    ):
        layer, (first, second) = what.split()[0], (None if key == -1 else key for key in place)
        if layer in WORK:
            shown.add((layer, process, first, second))
        elif layer in KINDS and layer != "cuda_events":  # these are on the row of their stream
            shown.add((layer, process) if layer in OF_PROCESS else (layer, process, first))
    return shown


def of(shown: Shown, *layers: str) -> Shown:
    return {row for row in shown if row[0] in layers}


def layers(shown: Shown) -> set[str]:
    return {row[0] for row in shown}


def same(report: Report) -> None:
    on_page, in_terminal, in_exports = page(report), terminal(report), exported(report)
    assert not layers(on_page) & NOT_ON_THE_PAGE
    assert not layers(in_terminal) & NOT_IN_THE_TERMINAL
    assert not layers(in_exports) & NOT_IN_EXPORTS

    # Below threads.
    shared = set(KINDS) - {
        "kernels",
        "graphs",
        "memcpys",
        "memsets",
        "memory_rows",
        "nvtx_ranges",
        "python_calls",
    }
    for others, missing in ((in_terminal, NOT_IN_THE_TERMINAL), (in_exports, NOT_IN_EXPORTS)):
        both = [
            layer
            for layer in shared
            if layer not in missing | NOT_ON_THE_PAGE and not layer.startswith("intrakernel")
        ]
        assert of(others, *both) == of(on_page, *both)
    # Python's calls are kept apart by their kind on the page.
    assert of(in_terminal, "python_calls") == of(in_exports, "python_calls") == of(on_page, "python_calls")

    # Ranges: the page has all tasks of a process on one row.
    assert {row for row in of(in_terminal, "nvtx_ranges") if row[3] != "tasks"} == {
        row for row in of(on_page, "nvtx_ranges") if row[3] != "tasks"
    }
    assert {row[1] for row in of(in_terminal, "nvtx_ranges") if row[3] == "tasks"} == {
        row[1] for row in of(on_page, "nvtx_ranges") if row[3] == "tasks"
    }

    # GPUs: streams, what is on them, and copies by direction.
    assert of(in_exports, *WORK) == of(on_page, *WORK)
    assert {row[1:] for row in of(in_terminal, "stream")} == {
        row[1:] for row in of(on_page, "kernels", "graphs")
    }
    assert of(in_terminal, "memory_rows") == of(on_page, "memory_rows")
    assert {row[1] for row in of(in_terminal, "memsets")} == {row[1] for row in of(on_page, "memsets")}


def test_of_a_picture(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE)
    with Report.open(tmp_path / "r.warplens") as report:
        same(report)
        assert {
            "nvtx_ranges",
            "cuda_api",
            "kernels",
            "memcpys",
            "memsets",
            "graphs",
            "memory_rows",
        } <= layers(page(report))


def test_of_the_cpu_side(tmp_path: Path) -> None:
    cpu_story.write(tmp_path / "r.warplens")
    with Report.open(tmp_path / "r.warplens") as report:
        same(report)
        assert {"thread_states", "samples", "python_calls", "imports", "gc", "gil", "osrt"} <= layers(
            page(report)
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", few(NAMES, 2))
def test_of_a_recording(name: str, tmp_path: Path) -> None:
    unpack(GOLDEN / f"{name}.tar.xz", tmp_path)
    finish(tmp_path / "spool", tmp_path / f"{name}.warplens")
    with Report.open(tmp_path / f"{name}.warplens") as report:
        same(report)
