"""`warplens recipe`: names, folders, formats and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.reports import training_job
from tests.support.reports.gpu_ranks import ranks
from warplens.cli.commands import recipe
from warplens.cli.group import commands
from warplens.errors import UsageError


def folder_of_ranks(folder: Path) -> Path:
    folder.mkdir()
    ranks(folder, (0, 1, 10))
    return folder


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(commands, ["recipe", *map(str, words)], catch_exceptions=False)


def test_a_table_of_stats_is_compared_over_a_folder(tmp_path: Path) -> None:
    result = run("cuda_gpu_kern_sum", folder_of_ranks(tmp_path / "all"), "--jobs", "1")
    assert result.exit_code == 0
    assert "Total Time (ns) of cuda_gpu_kern_sum over 3 reports." in result.stdout
    assert "rank10.warplens" in result.stdout
    assert "Also with -f csv -o NAME: by_rank" in result.stdout


def test_json_has_the_facts_the_tables_and_what_was_left_out(tmp_path: Path) -> None:
    folder = folder_of_ranks(tmp_path / "all")
    (folder / "broken.warplens").mkdir()
    result = run("cuda_gpu_kern_sum:column=Instances", folder, "-f", "json", "-j", "1")
    answer = json.loads(result.stdout)
    assert (answer["reports"], answer["column"]) == (3, "Instances")
    assert answer["tables"]["over_ranks"][0]["Sum"] == 3
    assert [Path(path).name for path in answer["left_out"]] == ["broken.warplens"]
    assert "left out" in result.stderr


def test_files_are_written_and_kept_unless_told(tmp_path: Path) -> None:
    folder, base = folder_of_ranks(tmp_path / "all"), tmp_path / "out"
    assert run("cuda_gpu_kern_sum", folder, "-f", "csv", "-o", base, "-j", "1").exit_code == 0
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out_by_rank.csv", "out_over_ranks.csv"]
    assert len((tmp_path / "out_by_rank.csv").read_text(encoding="utf-8").splitlines()) == 4
    with pytest.raises(Exception, match="exists"):
        run("cuda_gpu_kern_sum", folder, "-f", "csv", "-o", base, "-j", "1")
    assert (
        run("cuda_gpu_kern_sum", folder, "-f", "csv", "-o", base, "--force-overwrite", "-j", "1").exit_code
        == 0
    )


def test_reports_of_a_folder_come_by_number(tmp_path: Path) -> None:
    folder = folder_of_ranks(tmp_path / "all")
    names = [path.name for path in recipe.expanded((folder,))]
    assert names == ["rank0.warplens", "rank1.warplens", "rank10.warplens"]


def test_stragglers_in_json_have_the_names_that_scripts_read(tmp_path: Path) -> None:
    rows = training_job.job(2, 2, steps=2, microbatches=3, forward=lambda *_: 0.1, backward=lambda *_: 0.2)
    answer = json.loads(
        run("straggler", "-f", "json", training_job.write(tmp_path / "j.parquet", rows)).stdout
    )
    assert {"slowdown", "slowdown_by_type", "slowdown_by_worker", "m_s", "m_w"} <= set(answer)
    assert set(answer["slowdown_by_worker"]) == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("straggle", "did you mean straggler"), ("sums:nothing=1", "it takes: stat=…, column=…")],
)
def test_a_wrong_name_is_an_error_with_what_there_is(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        recipe.recipe_of(name)


def test_a_wrong_column_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no numeric column 'Nothing'; choose from: Time"):
        run("cuda_gpu_kern_sum:column=Nothing", folder_of_ranks(tmp_path / "all"), "-j", "1")


def test_no_report_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="name the reports, or a folder of reports"):
        recipe.expanded(())
