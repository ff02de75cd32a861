"""The last words of a recording, from drawn reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from warplens.cli.printing.summary import summary
from warplens.report import Report
from warplens.report import open as open_report
from warplens.storage.manifest import Manifest
from warplens.testing.kernel_insides import DrawnLaunch, launch_tables, pipeline
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
main    |[step        ][step      ]  !save
main    |  [load ]
w@io    |     [read         ]
p1/main |        {async   }
"""


def _lines(path: Path, manifest: Manifest, **sources: dict[str, Any]) -> list[str]:
    if sources:
        object.__setattr__(manifest, "sources", sources)
    with open_report(path) as report:
        return list(summary(report, manifest))


def test_the_summary_counts_records_and_lists_the_longest_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.warplens"
    manifest = timeline(path, PICTURE)
    lines = _lines(path, manifest, nvtx={"on": True, "cost_ns": 20.0})
    assert "Recorded  2 processes, 3 threads, 5 ranges, 1 mark in 28.0 us" in [
        line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines
    ]
    text = "\n".join(lines)
    assert text.index("2 x  step") < text.index("1 x  read  [io]") < text.index("1 x  load")
    assert "20 ns a range here, 0.21 % of the run (busiest thread)" in text
    assert "warplens timeline run.warplens" in text
    assert "Ended" not in text


def test_only_the_part_that_was_just_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    timeline(path, "main |[first ]", part="host-1-1")
    manifest = timeline(
        path,
        "main |[second ][second ]",
        part="host-2-2",
        diagnostics=[_diagnostic("warning", "mine", process=65536)],
    )
    text = "\n".join(_lines(path, manifest))
    assert "2 x  second" in text
    assert "first" not in text
    assert "mine" in text


def _diagnostic(
    severity: str, message: str, count: int | None = None, process: int | None = None
) -> dict[str, Any]:
    return {
        "severity": severity,
        "code": "c",
        "source": "nvtx",
        "message": message,
        "count": count,
        "process": process,
    }


def test_losses_come_first_errors_before_warnings(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    rows = [_diagnostic("warning", f"warning {number}", number) for number in range(9)]
    manifest = timeline(
        path,
        "main |[a ]",
        diagnostics=[*rows, _diagnostic("error", "worst of all"), _diagnostic("info", "unimportant")],
    )
    lines = [line for line in _lines(path, manifest) if line]
    assert "worst of all" in lines[0]
    assert "warning 8" in lines[1]
    assert "and 2 more: warplens info" in lines[8]
    assert "unimportant" not in "\n".join(lines)


def test_a_run_that_recorded_nothing_says_so_without_sql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.warplens"
    manifest = timeline(path, "main |    ", diagnostics=[_diagnostic("warning", "No process called NVTX.")])
    monkeypatch.setattr(Report, "sql", None)  # to load DuckDB takes longer than such a run
    text = click.unstyle("\n".join(_lines(path, manifest)))
    assert "Warning   No process called NVTX." in text
    assert "Recorded  1 process" in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, None),
        (None, None),
        (3, "with exit code 3"),
        (137, "killed by SIGKILL (exit code 137)"),
        (255, "with exit code 255"),
    ],
)
def test_how_it_ended(status: int | None, words: str | None, tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    lines = _lines(path, timeline(path, "main |[a ]", exit_status=status))
    ended = [line for line in lines if "Ended" in line]
    assert len(ended) == (0 if words is None else 1)
    assert words is None or words in ended[0]


def test_names_cannot_break_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    long, rude = "L" * 300, "a\x1b[31mb\nc"
    manifest = timeline(
        path,
        "main |[x ][y ][z ]",
        extra={"x": {"message": long}, "y": {"message": rude}, "z": {"message": None}},
    )
    lines = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in _lines(path, manifest)]
    assert all(len(line) < 80 for line in lines if "x  " in line)
    assert any("L…" in line for line in lines)
    assert any(r"a\x1b[31mb\nc" in line for line in lines)
    assert any("(no message)" in line for line in lines)


def test_a_cost_that_was_not_measured_is_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    text = " ".join(
        "\n".join(_lines(path, timeline(path, "main |[a ]"), nvtx={"on": True, "cost_ns": None})).split()
    )
    assert "cost could not be measured" in text
    assert "nothing" in " ".join(_lines(path, timeline(path, "main |[a ]"), nvtx={"on": False}))


def test_rare_kinds_are_counted_only_if_present(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    picture = "main |[step   ]\nmain#t1 | {fetch }\nmain#t2 | {fetch }\nmain~mem |1 2 3"
    text = "\n".join(_lines(path, timeline(path, picture, payloads={"step": [1]})))
    assert "3 ranges, 2 tasks, 1 payload, 1 counter, 3 samples in " in " ".join(text.split())
    assert "object" not in text


def test_a_recording_of_counters_alone_has_something_to_show(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    text = "\n".join(_lines(path, timeline(path, "main~mem |1 2 3")))
    assert "warplens timeline" in text


def test_the_summary_names_launches_that_recorded_inside(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    launches = [
        DrawnLaunch(
            "gemm" + "<long>" * 30 * (number == 6) + f"_{number}",
            at,
            at + 100 * number,
            list(pipeline(at, at + 100 * number)),
            kernel=None,
        )
        for number in range(1, 8)
        for at in range(0, 1000 * number, 1000)
    ]
    manifest = timeline(path, "main |[a ]", tables=launch_tables(launches))
    lines = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in _lines(path, manifest)]
    (first,) = (number for number, line in enumerate(lines) if line.startswith("Inside"))
    records = 8 * (4 * 2 + 1 + 4 * 3 + 1)
    assert lines[first].split() == [
        "Inside",
        "4.90",
        "us",
        "7",
        "x",
        "gemm_7:",
        f"{7 * records:,}",
        "records",
    ]
    assert "…" in lines[first + 1]
    assert lines[first + 5].strip().startswith("and 2 more")
    assert all(len(line) < 80 for line in lines[first : first + 6])
    assert any("warplens timeline" in line for line in lines)


def test_gpus_are_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    picture = """
        main:api      |(cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )
        gpu0.7        |     (gemm#1  )           (HtoD#2           )
        gpu0.8        |         (add#1   )
        p1/gpu0.7     |                     (gemm           )
        p1/gpu1.7     |  (fill  )
        main:overhead |(Buffer_flush )(Command_buffer_full )
        :overhead     |     (Buffer_flush    )
    """
    cuda: dict[str, dict[str, Any]] = {"gpu0": {"name": "H100"}, "HtoD": {"bytes": 38_000_000}}
    manifest = timeline(path, picture, cuda=cuda)
    text = "\n".join(click.unstyle(line) for line in _lines(path, manifest))
    words = " ".join(text.split())
    assert "2 API calls, 4 kernels, 1 memcpy in 45.0 us" in words
    # 5 to 19, and 21 to 45, whichever process it is
    assert "GPU 0 H100: busy 38.0 us, 84.4 % of the run, by 2 processes" in words
    assert "GPU 1 busy 8.00 us, 17.8 % of the run" in words
    assert "Kernels 27.0 us 2 x gemm 10.0 us 1 x add 8.00 us 1 x fill" in words
    assert "Copies Host-to-Device 36.2 MiB at 2 TB/s" in words
    assert "Overhead of recording: buffer flush 15.0 us, buffer flush 18.0 us beside the program" in words
    assert "full" not in words
    assert "warplens timeline" in text
    assert all(len(line) < 80 for line in text.splitlines() if "warplens" not in line)


def test_gpus_of_another_part_are_not_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    timeline(path, "gpu0.7 |(first )", part="host-1-1")
    manifest = timeline(path, "gpu0.7 |(second )(second )", part="host-2-2")
    text = "\n".join(_lines(path, manifest))
    assert "2 x  second" in text
    assert "first" not in text
    assert "busy 18.0 us" in text


def test_the_summary_names_cost_and_gaps_of_graph_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    picture = """
        gpu0.7  |(gemm )(gemm )(add )
        gpu0.8  |(graph )(graph )
    """
    cuda: dict[str, dict[str, Any]] = {"gemm": {"graph": 3}}
    words = " ".join(
        "\n".join(click.unstyle(line) for line in _lines(path, timeline(path, picture, cuda=cuda))).split()
    )
    assert (
        "Graphs 2 kernels of 1 graph recorded one by one, which slows each launch: --cuda-graph-trace=graph does not;"
        in words
    )
    assert "2 launches recorded as a whole: --cuda-graph-trace=node has the kernels" in words
    other = tmp_path / "other.warplens"
    assert "Graphs" not in "\n".join(_lines(other, timeline(other, "gpu0.7 |(gemm )")))


def test_the_cpu_side_is_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    picture = """
    main:python |(main;load )(main;step    )
    main:os     |(poll )(read:/a )
    main:gil    |(hold )(wait )
    main:gc     |(2   )(0 )
    """
    notes = [
        _diagnostic("warning", f"native sampling is missing in process {pid}")
        | {"source": "cpu", "process": 0}
        for pid in (100, 101, 102)
    ]
    text = " ".join(
        click.unstyle("\n".join(_lines(path, timeline(path, picture, diagnostics=notes)))).split()
    )
    assert "27 Python samples, 2 OS calls, 1 GIL hold, 2 collections in " in text
    assert "Hottest 56 % step, 44 % load" in text
    assert "OS calls 10.0 us in read (1 x), 7.00 us in poll (1 x)" in text
    assert "GC 10.0 us in 2 collections, the longest 6.00 us" in text
    assert "GIL held for 7.00 us, threads waited 7.00 us for it (1 x)" in text
    assert text.count("native sampling is missing") == 1
    assert "(the same in 2 other processes)" in text
    assert "warplens timeline" in text
