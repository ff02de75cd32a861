"""Parts are computed in any pool, merged in order, and lost workers and broken reports change nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.programs.launching import environment
from tests.support.reports.gpu_ranks import ranks
from warplens import catalog
from warplens.errors import MissingData
from warplens.recipes import engine, merging, process_pool
from warplens.recipes.base import Answer, BrokenPart, Summary
from warplens.recipes.engine import PartTask, Result
from warplens.recipes.process_pool import ProcessPool
from warplens.report import Report
from warplens.testing.timeline import timeline

sums = catalog.find("recipes.questions", "sums").load()


def summed(paths: Sequence[Path], jobs: int) -> tuple[Answer, list[BrokenPart]]:
    return engine.run("sums", paths, ProcessPool(jobs), options={"stat": "cuda_gpu_kern_sum", "column": ""})


def same(answer: Answer, other: Answer) -> bool:
    return (
        answer.lines == other.lines
        and answer.facts == other.facts
        and all(table.equals(other.tables[name]) for name, table in answer.tables.items())
        and all(table.equals(other.details[name]) for name, table in answer.details.items())
    )


def test_sums_over_ranks_are_those_of_numpy(tmp_path: Path) -> None:
    answer, broken = summed(ranks(tmp_path, range(5)), 1)
    assert not broken
    (row,) = answer.tables["over_ranks"].to_pylist()
    each = np.array([row["Total Time (ns)"] for row in answer.details["by_rank"].to_pylist()], np.float64)
    assert len(set(each.tolist())) == 5
    assert row["Name"] == "gemm"
    assert (row["Reports"], row["Sum (ns)"], row["Mean (ns)"]) == (5, each.sum(), each.mean())
    assert row["StdDev (ns)"] == pytest.approx(each.std(ddof=1))
    assert [row[f"{name} (ns)"] for name in ("Min", "Q1", "Med", "Q3", "Max")] == [
        *np.percentile(each, (0, 25, 50, 75, 100))
    ]
    assert row["Max at"] == "rank4.warplens"


def test_processes_give_the_same_answer(tmp_path: Path) -> None:
    paths = ranks(tmp_path, range(5))
    assert same(summed(paths, 1)[0], summed(paths, 3)[0])


def test_a_broken_report_is_named_and_left_out(tmp_path: Path) -> None:
    paths = ranks(tmp_path, range(5))
    (tmp_path / "broken.warplens").mkdir()
    for jobs in (1, 2):
        answer, broken = summed([*paths[:2], tmp_path / "broken.warplens", *paths[2:]], jobs)
        assert [one.path.name for one in broken] == ["broken.warplens"]
        assert broken[0].error
        assert answer.facts["reports"] == 5


def test_a_report_that_breaks_the_recipe_is_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ranks(tmp_path, range(3))
    real = sums.part

    def breaks(report: Report, **options: str) -> Summary:
        if report.path == paths[1]:
            raise RuntimeError("a bug")
        summary: Summary = real(report, **options)
        return summary

    monkeypatch.setattr(sums, "part", breaks)
    answer, broken = summed(paths, 1)
    assert [(one.path, one.error) for one in broken] == [(paths[1], f"{paths[1]}: RuntimeError: a bug")]
    assert answer.facts["reports"] == 2


def test_reports_without_the_data_are_an_error(tmp_path: Path) -> None:
    timeline(tmp_path / "a.warplens", "main |[work]")
    with pytest.raises(MissingData, match="does not contain"):
        summed([tmp_path / "a.warplens"], 1)


def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    paths = ranks(tmp_path, range(8))
    expected = summed(paths, 1)[0]
    killed: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + 30
        while not killed and time.monotonic() < deadline:
            for pid in workers():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    answer, broken = summed(paths, 2)
    killer.join()
    assert killed
    assert not broken
    assert same(answer, expected)


def workers() -> Iterator[int]:
    """The worker processes of this one."""
    own = str(os.getpid())
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if (
                b"warplens.recipes.worker" in words
                and (entry / "stat").read_text().rsplit(")", 1)[1].split()[1] == own
            ):
                yield int(entry.name)
        except (OSError, ValueError):
            continue


def test_a_part_that_kills_every_worker_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ranks(tmp_path, range(3))
    asked = process_pool._asked
    tries: list[int] = []

    def deadly(worker: subprocess.Popen[bytes], part: PartTask) -> Result:
        if part.number == 1:
            tries.append(worker.pid)
            worker.kill()
            worker.wait()
        return asked(worker, part)

    monkeypatch.setattr(process_pool, "_asked", deadly)
    answer, broken = summed(paths, 2)
    assert len(set(tries)) == process_pool.TRIES
    assert [one.path for one in broken] == [paths[1]]
    assert "ended 3 times" in broken[0].error
    assert answer.facts["reports"] == 2


def test_merging_does_not_depend_on_the_tree() -> None:
    parts = [merging.numbered({"rows": pa.table({"x": [number, -number]})}, number) for number in range(7)]
    whole = merging.in_order(merging.tree(parts, merging.below))
    turned = merging.in_order(merging.tree(parts[::-1], merging.below))
    assert whole["rows"].equals(turned["rows"])
    assert whole["rows"].column("report").to_pylist() == [number for number in range(7) for _ in range(2)]


def test_a_worker_keeps_its_output_apart(tmp_path: Path) -> None:
    """What a library prints while a part is computed must not stand between the results."""
    (path,) = ranks(tmp_path, range(1))
    script = (
        "import sys, warplens.recipes.engine as e, warplens.recipes.worker as w\n"
        "real = e.compute\n"
        "def noisy(task):\n    print('noise')\n    return real(task)\n"
        "w.compute = noisy\nw.main()\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    task = PartTask("sums", (("stat", "cuda_gpu_kern_sum"),), path, 0)
    result = process_pool._asked(worker, task)
    process_pool._end(worker)
    assert result.summary is not None
