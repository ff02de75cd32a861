"""Summaries are kept until the report, the recipe's options or the version change."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warplens import catalog
from warplens.handover import contents
from warplens.handover.naming import SUMMARIES
from warplens.recipes import engine, summaries
from warplens.recipes.base import Answer, Summary
from warplens.recipes.process_pool import ProcessPool
from warplens.report import Report
from warplens.testing.timeline import timeline


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "warplens" / SUMMARIES


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the reports of which a summary was computed."""
    question: ModuleType = catalog.find("recipes.questions", "sums").load()
    real, names = question.part, list[str]()

    def part(report: Report, **options: Any) -> Summary:
        names.append(report.path.name)
        summary: Summary = real(report, **options)
        return summary

    monkeypatch.setattr(question, "part", part)
    return names


def drawn(path: Path, length: int = 4) -> Path:
    timeline(path, f"main |[{'work'.ljust(length)}]")
    return path


def answered(*paths: Path, **options: str) -> Answer:
    answer, broken = engine.run("sums", paths, ProcessPool(1), options={"stat": "nvtx_sum", **options})
    assert not broken
    return answer


def total(answer: Answer) -> int:
    return int(answer.tables["over_ranks"].column("Sum (ns)")[0].as_py())


def test_a_question_that_was_asked_before_reads_no_report(tmp_path: Path, asked: list[str]) -> None:
    report = drawn(tmp_path / "a.warplens")
    first, second = answered(report), answered(report)
    assert asked == ["a.warplens"]
    assert second.facts == first.facts
    assert all(table.equals(second.tables[name]) for name, table in first.tables.items())
    answered(report, column="Instances")
    assert len(asked) == 2
    assert not contents.of_others(report), "they may be overwritten with the report"


def test_another_content_or_version_is_computed_again(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = drawn(tmp_path / "a.warplens")
    before = total(answered(report))
    (kept,) = (report / SUMMARIES).iterdir()
    shutil.rmtree(report)
    drawn(report, 8)
    (report / SUMMARIES).mkdir()
    (report / SUMMARIES / kept.name).write_bytes(b"of the old report")
    assert total(answered(report)) == before + 4_000
    assert kept not in (report / SUMMARIES).iterdir(), "the newer summary takes its place"
    monkeypatch.setattr(summaries, "_version", lambda: "9.9")
    answered(report)
    assert len(asked) == 3


def test_a_table_that_changed_in_place_is_computed_again(tmp_path: Path, asked: list[str]) -> None:
    report = drawn(tmp_path / "a.warplens")
    before = total(answered(report))
    (file,) = (report / "tables" / "nvtx_ranges").glob("*.parquet")
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("end")
    later = pa.array([end.as_py() + 5 for end in rows.column("end")], rows.schema.field("end").type)
    pq.write_table(rows.set_column(place, rows.schema.field("end"), later), file)
    assert total(answered(report)) == before + 5
    assert len(asked) == 2


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:40] + b"x" + data[41:]]
)
def test_a_broken_summary_is_computed_again(tmp_path: Path, asked: list[str], damage: Any) -> None:
    report = drawn(tmp_path / "a.warplens")
    before = total(answered(report))
    (kept,) = (report / SUMMARIES).iterdir()
    kept.write_bytes(damage(kept.read_bytes()))
    assert total(answered(report)) == before
    assert len(asked) == 2
    assert total(answered(report)) == before
    assert len(asked) == 2


def test_a_copy_has_its_own_name(tmp_path: Path, asked: list[str]) -> None:
    report = drawn(tmp_path / "a.warplens")
    answered(report)
    shutil.copytree(report, tmp_path / "b.warplens")
    rows = answered(report, tmp_path / "b.warplens").details["by_rank"]
    assert rows.column("Rank").to_pylist() == ["a.warplens", "b.warplens"]
    assert asked == ["a.warplens", "b.warplens"]


def test_reports_of_others_are_not_written_to(
    tmp_path: Path, asked: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = drawn(tmp_path / "a.warplens")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else"))
    answered(report)
    answered(report)
    assert asked == ["a.warplens"]
    assert not (report / SUMMARIES).exists()
    assert len(list(cache.iterdir())) == 1


def test_a_report_that_is_recorded_now_keeps_nothing(tmp_path: Path, asked: list[str]) -> None:
    report = drawn(tmp_path / "a.warplens")
    pending = report / "pending.d"
    pending.mkdir(exist_ok=True)
    (pending / "host-1-1.json.tmp").write_text("{}")
    answered(report)
    answered(report)
    assert len(asked) == 2
