"""`warplens recipe`: names, folders, formats and files."""

from __future__ import annotations

import html
import json
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.support.reports import training_job
from tests.support.reports.gpu_ranks import ranks
from warplens.cli.commands import recipe
from warplens.cli.group import commands
from warplens.errors import UsageError
from warplens.testing.timeline import timeline


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


def test_parquet_has_the_tables_as_they_are(tmp_path: Path) -> None:
    base = tmp_path / "out"
    folder = folder_of_ranks(tmp_path / "all")
    assert run("cuda_gpu_kern_sum", folder, "-f", "parquet", "-o", base, "-j", "1").exit_code == 0
    (row,) = pq.read_table(tmp_path / "out_over_ranks.parquet").to_pylist()
    assert (row["Name"], row["Reports"], row["Max at"]) == ("gemm", 3, "rank10.warplens")
    assert pq.read_table(tmp_path / "out_by_rank.parquet").num_rows == 3
    with pytest.raises(UsageError, match="-f parquet writes files"):
        run("cuda_gpu_kern_sum", folder, "-f", "parquet", "-j", "1")


def test_the_page_draws_each_rank_and_says_how_to_open_it(tmp_path: Path) -> None:
    folder, page = folder_of_ranks(tmp_path / "<all> &"), tmp_path / "map.html"
    (folder / "broken.warplens").mkdir()
    assert run("gpu_time_util_map:bins=5", folder, "-f", "html", "-o", page, "-j", "1").exit_code == 0
    text = page.read_text(encoding="utf-8")
    tree = ET.fromstring("<svg" + text.partition("<svg")[2].partition("</svg>")[0] + "</svg>")
    links = [link.get("href") for link in tree.iter("a")]
    assert len(links) == 3
    for link in links:
        assert link is not None
        assert f'id="{link.removeprefix("#")}"' in text, "a row leads to its report"
    assert html.escape(f"warplens view {shlex.quote(str(folder / 'rank10.warplens'))}") in text
    assert "left out: " in text
    assert "<all>" not in text
    assert "default-src 'none'" in text
    assert "<script" not in text


def test_a_job_is_compared_with_an_earlier_one_by_rank(tmp_path: Path) -> None:
    """`gemm` takes 1,000 ns more on every rank, 3,000 ns more on the last one."""
    numbers = [*range(8), 10]
    before, now = tmp_path / "before", tmp_path / "now"
    before.mkdir()
    now.mkdir()
    ranks(before, numbers)
    for rank in numbers:
        more = 3 if rank == 10 else 1
        timeline(
            now / f"rank{rank}.warplens",
            f"main:api |(cudaLaunchKernel#1)\ngpu0.7   |                     (gemm#1{'-' * (rank + more)})",
            part=f"host-{rank}-1",
        )
    result = run("cuda_gpu_kern_sum", now, "--against", before, "-f", "json", "-j", "1")
    answer = json.loads(result.stdout)
    (row,) = answer["tables"]["changes"]
    assert (row["Name"], row["Ranks"], row["Most at"]) == ("gemm", 9, "rank10.warplens")
    assert row["Change (ns)"] == pytest.approx((8 * 1_000 + 3_000) / 9)
    assert row["p"] < 0.01
    assert answer["changed"] == 1
    assert [one["Change (ns)"] for one in answer["tables"]["by_rank"]] == [1_000.0] * 8 + [3_000.0]
    same = json.loads(run("cuda_gpu_kern_sum", now, "--against", now, "-f", "json", "-j", "1").stdout)
    assert same["changed"] == 0


def test_reports_of_a_folder_come_by_number(tmp_path: Path) -> None:
    folder = folder_of_ranks(tmp_path / "all")
    names = [Path(path).name for path in recipe.expanded((folder,))]
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
