"""Operations of a training job become a report: a process for each rank, a range for each operation."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.reports import training_job
from warplens.errors import NotAReport, ReportError
from warplens.flows import foreign
from warplens.importers.importing import import_file
from warplens.report import open as open_report

STAGES, DP, STEPS, MICROBATCHES = 2, 2, 3, 4
DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "stragglers"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = training_job.job(STAGES, DP, STEPS, MICROBATCHES, forward=lambda *_: 0.1, backward=lambda *_: 0.2)
    return training_job.write(tmp_path / "job.parquet", rows)


def test_each_operation_is_a_range_of_its_rank(trace: Path, tmp_path: Path) -> None:
    import_file(trace, tmp_path / "job.warplens")
    source = pq.read_table(trace).to_pylist()
    with open_report(tmp_path / "job.warplens") as report:
        rows = report.sql(
            """SELECT p.rank, t.name AS thread, r.message AS name, r.payload_int AS number, r."end" - r.start AS length
               FROM nvtx_ranges r JOIN processes p USING (process) JOIN threads t ON t.thread = r.thread"""
        ).to_pylist()
    got = sorted(
        (row["rank"], row["name"], row["number"], round(row["length"] / 1e9, 6))
        for row in rows
        if row["name"] != "step"
    )
    wanted = sorted((row["rank"], row["optype"], row["seq_id"], round(row["duration"], 6)) for row in source)
    assert got == wanted
    threads = {row["name"]: row["thread"] for row in rows}
    assert threads["forward-compute"] == threads["step"] == "compute"
    assert threads["forward-send"] == threads["backward-recv"] == "pipeline"
    assert threads["optimizer-clip-main-grad"] == "collectives"


def test_steps_follow_one_another_and_hold_their_operations(trace: Path) -> None:
    with foreign.open(trace) as report:
        steps = report.sql(
            """SELECT payload_int AS step, start, "end" FROM nvtx_ranges
               WHERE message = 'step' AND process = (SELECT min(process) FROM processes) ORDER BY start"""
        ).to_pylist()
        outside = report.sql(
            """SELECT count(*) AS n FROM nvtx_ranges o WHERE message <> 'step' AND NOT EXISTS (
               SELECT 1 FROM nvtx_ranges s WHERE s.message = 'step' AND s.process = o.process
               AND s.start <= o.start AND o."end" <= s."end")"""
        ).to_pylist()
    assert [row["step"] for row in steps] == list(range(STEPS))
    assert all(first["end"] < second["start"] for first, second in pairwise(steps))
    assert outside == [{"n": 0}]


def test_a_parquet_file_of_something_else_is_no_report(tmp_path: Path) -> None:
    pq.write_table(pq.read_table(_other(tmp_path)), tmp_path / "other.parquet")
    with pytest.raises(NotAReport):
        import_file(tmp_path / "other.parquet", tmp_path / "x.warplens")


def test_a_broken_file_is_named(trace: Path, tmp_path: Path) -> None:
    data = trace.read_bytes()
    broken = tmp_path / "cut.parquet"
    table = pq.read_table(trace)
    pq.write_table(table.slice(0, 0), broken)
    with pytest.raises(ReportError, match=r"cut\.parquet"):
        import_file(broken, tmp_path / "x.warplens")
    broken.write_bytes(data[: len(data) // 2])
    with pytest.raises(NotAReport):
        import_file(broken, tmp_path / "y.warplens")


def test_a_published_trace_has_all_its_operations(tmp_path: Path) -> None:
    trace = DATA / "trace-ST.parquet"
    if not trace.is_file():
        pytest.skip(f"{trace.name} is not beside the checkout")
    import_file(trace, tmp_path / "st.warplens")
    with open_report(tmp_path / "st.warplens") as report:
        assert report.tables["nvtx_ranges"] == 6_784 + 8 * 32
        assert sorted(report.table("processes").column("rank").to_pylist()) == list(range(8))


def _other(folder: Path) -> Path:
    import pyarrow as pa

    pq.write_table(pa.table({"a": [1]}), folder / "a.parquet")
    return folder / "a.parquet"
