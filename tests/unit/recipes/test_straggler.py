"""The what-if analysis of a training job: against a simulation of our own, and against published results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.reports import training_job
from warplens.errors import MissingData, ReportError
from warplens.importers.jobs import operations
from warplens.recipes import engine
from warplens.recipes.base import Answer
from warplens.recipes.jobs import what_if
from warplens.recipes.process_pool import ProcessPool

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "stragglers"
STAGES, DP, MICROBATCHES = 4, 2, 6


def stragglers(path: Path, slow: float = 1.0, slow_rank: tuple[int, int] = (1, 1)) -> what_if.Stragglers:
    """Analyse a job in which the computations of one (stage, dp rank) take `slow` times as long."""
    rows = training_job.job(
        STAGES,
        DP,
        steps=3,
        microbatches=MICROBATCHES,
        forward=lambda stage, dp_rank, *_: 0.1 * (slow if (stage, dp_rank) == slow_rank else 1.0),
        backward=lambda stage, dp_rank, *_: 0.2 * (slow if (stage, dp_rank) == slow_rank else 1.0),
    )
    return what_if.stragglers(operations.read(training_job.write(path / "job.parquet", rows)))


def answered(path: Path) -> Answer:
    answer, broken = engine.run("straggler", [path], ProcessPool(1), options={})
    assert not broken
    return answer


def test_an_even_job_has_no_stragglers(tmp_path: Path) -> None:
    result = stragglers(tmp_path)
    assert result.ideal == pytest.approx((MICROBATCHES + STAGES - 1) * 0.3)
    assert result.slowdown == pytest.approx(1.0)
    assert list(result.by_worker.values()) == pytest.approx([1.0] * STAGES * DP)
    assert answered(tmp_path / "job.parquet").lines[1].startswith("No stragglers")


def test_a_slow_worker_is_named(tmp_path: Path) -> None:
    result = stragglers(tmp_path, slow=1.5)
    assert result.replayed == pytest.approx(result.traced), "the graph gives the simulated times again"
    slow = 1 * DP + 1
    assert result.slowest == (slow,)
    assert result.by_worker[slow] > 1.1
    assert all(value < 1.05 for rank, value in result.by_worker.items() if rank != slow)
    assert result.slowest_workers is not None
    assert result.slowest_workers > 0.9, "without it, the job has lost nothing"
    assert result.last_stage is not None
    assert result.last_stage < 0.1
    answer = answered(tmp_path / "job.parquet")
    assert f"The slowest worker (rank {slow}) explains all of it." in answer.lines


def test_a_slow_last_stage_explains_the_loss(tmp_path: Path) -> None:
    rows = training_job.job(
        STAGES,
        DP,
        steps=2,
        microbatches=MICROBATCHES,
        forward=lambda stage, *_: 0.2 if stage == STAGES - 1 else 0.1,
        backward=lambda stage, *_: 0.3 if stage == STAGES - 1 else 0.2,
    )
    facts = answered(training_job.write(tmp_path / "job.parquet", rows)).facts
    assert facts["m_s"] > 0.95
    assert max(facts["slowdown_by_stage"], key=facts["slowdown_by_stage"].get) == str(STAGES - 1)
    assert list(facts["slowdown_by_worker"])[:2] == ["6", "7"]


def test_steps_of_different_shapes_are_run_with_their_own_graphs(tmp_path: Path) -> None:
    def rows(steps: int, microbatches: int) -> list[dict[str, Any]]:
        return training_job.job(
            2, 1, steps=steps, microbatches=microbatches, forward=lambda *_: 0.1, backward=lambda *_: 0.2
        )

    shorter = rows(1, microbatches=3)
    for row in shorter:
        row["step"] = 7
    result = what_if.stragglers(
        operations.read(training_job.write(tmp_path / "job.parquet", [*rows(1, microbatches=5), *shorter]))
    )
    assert result.replayed == pytest.approx(((5 + 1) * 0.3 + (3 + 1) * 0.3) / 2)


@pytest.mark.parametrize("name", ["ST", "SE"])
def test_the_published_results_are_reproduced(name: str) -> None:
    trace = DATA / f"trace-{name}.parquet"
    if not trace.is_file():
        pytest.skip(f"{trace.name} is not beside the checkout")
    facts = answered(trace).facts
    published = json.loads((DATA / f"result-{name}.json").read_text(encoding="utf-8"))
    assert facts["slowdown"] == pytest.approx(published["blocking_slowdown"], rel=1e-5)
    assert facts["launch_slowdown"] == pytest.approx(published["launch_slowdown"], rel=1e-3)
    for ours, theirs in (
        ("type", "optype"),
        ("stage", "stage"),
        ("dp_rank", "dp_rank"),
    ):
        expected = published[f"blocking_decompose_by_{theirs}"]
        assert facts[f"slowdown_by_{ours}"] == {
            key: pytest.approx(value, rel=1e-5) for key, value in expected.items()
        }
    for key, file, figure in (("m_s", "ms", "Ms"), ("m_w", "mw", "Mw")):
        expected = json.loads((DATA / f"{file}-{name}.json").read_text(encoding="utf-8"))[figure]
        assert facts[key] == pytest.approx(expected, rel=1e-5)


def spoilt(change: str) -> pa.Table:
    rows = training_job.job(2, 1, steps=1, microbatches=2, forward=lambda *_: 0.1, backward=lambda *_: 0.2)
    table = pa.Table.from_pylist(rows)
    if change == "nulls":
        return table.set_column(0, "dp_rank", pa.array([None] * len(rows), pa.int8()))
    if change == "text":
        return table.set_column(table.column_names.index("start_ts"), "start_ts", pa.array(["x"] * len(rows)))
    if change == "negative":
        return table.set_column(
            table.column_names.index("duration"), "duration", pa.array([-1.0] * len(rows))
        )
    if change == "not finite":
        return table.set_column(
            table.column_names.index("duration"), "duration", pa.array([float("nan")] * len(rows))
        )
    if change == "interleaved":
        return table.set_column(table.column_names.index("mc"), "mc", pa.array([1] * len(rows)))
    return table.slice(0, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("nulls", "the column dp_rank has nulls"),
        ("text", "the column start_ts has the type string"),
        ("negative", "a negative duration"),
        ("not finite", "is not finite"),
        ("interleaved", "interleaved stages are not supported"),
        ("empty", "has no operation"),
    ],
)
def test_a_bad_file_is_refused_in_words(change: str, words: str, tmp_path: Path) -> None:
    pq.write_table(spoilt(change), tmp_path / "job.parquet")
    with pytest.raises(ReportError, match=words):
        operations.read(tmp_path / "job.parquet")


def test_a_file_of_something_else_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "notes.parquet").write_text("no Parquet", encoding="utf-8")
    with pytest.raises(MissingData, match="a Parquet file of operations with the columns dp_rank"):
        answered(tmp_path / "notes.parquet")


def test_operations_that_wait_for_one_another_are_refused(tmp_path: Path) -> None:
    rows = training_job.job(2, 1, steps=1, microbatches=1, forward=lambda *_: 0.1, backward=lambda *_: 0.2)
    for row in rows:  # the receiver computes before it receives, and the sender waits for that
        if row["optype"] == "backward-compute" and row["stage"] == 0:
            row["start_ts"] = -1.0
        if row["optype"] == "forward-compute" and row["stage"] == 0:
            row["start_ts"] = 9.0
    path = training_job.write(tmp_path / "job.parquet", rows)
    assert what_if.stragglers(operations.read(path)).replayed > 0
