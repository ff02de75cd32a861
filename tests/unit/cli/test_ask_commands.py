"""The commands `stats`, `query`, `export`, called as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warplens.cli.commands import stats
from warplens.cli.group import commands, run
from warplens.errors import WarplensError
from warplens.testing.timeline import timeline


@pytest.fixture
def report(tmp_path: Path) -> str:
    timeline(
        tmp_path / "run.warplens", "main |[step     ][step ]\nmain | [load ]\nmain@io | !saved\nw |<open"
    )
    return str(tmp_path / "run")


def call(*words: str, input: str | None = None) -> Result:
    return CliRunner().invoke(commands, list(words), input=input)


def refused(*words: str) -> str:
    result = call(*words)
    assert result.exit_code != 0
    return str(result.exception) if isinstance(result.exception, WarplensError) else result.output


@pytest.mark.slow
def test_stats_prints_the_default_tables_with_a_banner(report: str) -> None:
    result = call("stats", report)
    assert result.exit_code == 0
    assert result.stdout.startswith(" ** NVTX Range Summary (nvtx_sum):\n\nTime (%)  Total Time (us)")
    assert "PushPop  :step" in result.stdout
    assert "Note: 1 unfinished" in result.stdout


def test_stats_prints_the_default_tables_in_the_order_of_nsys() -> None:
    first = [
        "nvtx_sum",
        "osrt_sum",
        "cuda_api_sum",
        "cuda_gpu_kern_sum",
        "cuda_gpu_mem_time_sum",
        "cuda_gpu_mem_size_sum",
        "openmp_sum",
        "um_sum",
        "um_total_sum",
        "um_cpu_page_faults_sum",
        "openacc_sum",
    ]
    names = [job.stat.id for job in stats.jobs([], [], [])]
    assert names[: len(first)] == first
    ours = names[len(first) :]
    assert ours == sorted(ours)
    assert "gpu_memory_sum" in ours
    assert "cuda_gpu_trace" not in names


def test_stats_csv_is_data_and_nothing_else(report: str) -> None:
    result = call("stats", "-r", "nvtx_sum", "-f", "csv", "--timeunit", "us", report)
    assert (
        result.stdout.splitlines()[0]
        == "Time (%),Total Time (us),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev (us),Style,Range"
    )
    assert "unfinished" in result.stderr


def test_stats_lists_go_together_and_repeat_their_last(report: str, tmp_path: Path) -> None:
    base = str(tmp_path / "out")
    result = call(
        "stats",
        "-r",
        "nvtx_sum,nvtx_pushpop_sum",
        "-r",
        "nvtx_pushpop_trace",
        "-f",
        "csv,json",
        "-o",
        f"-,{base}",
        report,
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Time (%),")
    assert json.loads((tmp_path / "out_nvtx_pushpop_sum.json").read_text())[0]["Range"] == ":open"
    assert len(json.loads((tmp_path / "out_nvtx_pushpop_trace.json").read_text())) == 4
    assert "exists" in refused("stats", "-r", "nvtx_pushpop_sum", "-f", "json", "-o", base, report)
    assert (
        call(
            "stats", "-r", "nvtx_pushpop_sum", "-f", "json", "-o", base, "--force-overwrite=true", report
        ).exit_code
        == 0
    )


def test_stats_without_data_is_skipped(report: str) -> None:
    result = call("stats", "-r", "nvtx_startend_sum,nvtx_sum", report)
    assert result.exit_code == 0
    assert result.stderr.startswith("SKIPPED: run.warplens does not contain NVTX start/end range data.")
    assert call("stats", "-r", "nvtx_startend_sum", report).exit_code == 1


@pytest.mark.slow
def test_stats_filters(report: str) -> None:
    result = call("stats", "-f", "csv", "--filter-nvtx", "step/1", report)
    assert [line.split(",")[-1] for line in result.stdout.splitlines()[1:]] == [":open", ":step"]
    assert "is not a time" in refused("stats", "--filter-time", "a/b", report)


def test_stats_help_reports_explains(report: str) -> None:
    listed = call("stats", "--help-reports").stdout
    assert "nvtx_pushpop_trace" in listed
    assert "## Traps" in call("stats", "--help-reports", "nvtx_sum").stdout
    assert (
        "- by (str = 'function'): `function` (all together)"
        in call("stats", "--help-reports", "osrt_sum").stdout
    )


def test_formats_and_tables_are_explained() -> None:
    assert "  perfetto " in call("export", "--help-formats").stdout
    assert "## What is lost" in call("export", "--help-formats", "speedscope").stdout
    assert "## Made by" in call("import", "--help-formats", "kineto,nsys-sqlite").stdout
    assert "  kernels " in call("query", "--help-tables").stdout
    assert (
        "- start (int64, ns): First event of the thread in the agent."
        in call("query", "--help-tables", "threads").stdout
    )
    assert "## " not in call("query", "--help-tables", "ALL").stdout
    assert "did you mean nvtx_ranges?" in refused("query", "--help-tables", "nvtx_range")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-r", "nvtx_sums"), "did you mean nvtx_sum"),
        (("-r", "nvtx_sum:rows=3"), "has no argument 'rows=3'"),
        (("-f", "xml"), "no format 'xml'"),
        (("-o", "@less"), "| less"),
        (("--timeunit", "days"), "no time unit"),
    ],
)
def test_stats_refuses_with_a_way_out(report: str, words: tuple[str, ...], message: str) -> None:
    assert message in refused("stats", *words, report)


@pytest.mark.slow
def test_query_answers_in_every_format(report: str) -> None:
    question = "SELECT message, depth FROM nvtx_ranges WHERE depth = 1"
    assert call("query", report, question, "-f", "csv").stdout == "message,depth\nload,1\n"
    assert call("query", report, question).stdout.splitlines()[-1] == "load         1"
    assert call("query", report, "-", "-f", "tsv", input=question).stdout == "message\tdepth\nload\t1\n"


@pytest.mark.slow
def test_query_errors_name_the_tables(report: str) -> None:
    assert "There is no report SELECT 1" in refused("query", "SELECT 1", "SELECT 2")
    for question in (
        "SELECT nope FROM nvtx_ranges",
        "SELECT 1 FROM nowhere",
        "DROP VIEW nvtx_ranges",
        "SELECT 1; SELECT 2",
        "SELEC",
    ):
        assert "processes, threads, capture_windows, nvtx_ranges" in refused("query", report, question), (
            question
        )
    assert "message" in call("query", report, "DESCRIBE nvtx_ranges").output
    assert "nvtx_ranges" in call("query", report, "SHOW TABLES").output
    assert "approx_unique" in call("query", report, "SUMMARIZE nvtx_ranges").output
    assert call("query", report, "PRAGMA version", "--any").exit_code == 0


@pytest.mark.parametrize("question", ["SELECT 1", "SELECT 1 -- " + "a" * 300])
def test_query_proposes_the_other_order(report: str, question: str) -> None:
    said = refused("query", question, report, "-f", "csv")
    assert said == f'The report comes before the question: warplens query {report} "SELECT …"'


def test_an_unknown_option_proposes_only_what_looks_like_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", "--exprot", "x"]) == 2
    assert "Did you mean" not in capsys.readouterr().err
    assert run(["stats", "--foormat", "csv", "x"]) == 2
    assert "Did you mean --format?" in capsys.readouterr().err


@pytest.mark.slow
def test_export_writes_beside_the_report_and_says_what_is_lost(report: str, tmp_path: Path) -> None:
    result = call("export", report)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run.perfetto-trace").stat().st_size > 100
    assert "not in it: " not in result.stderr, "nothing of this report is lost"
    table = call("export", "-t", "arrow", "-o", str(tmp_path / "ranges.arrow"), report)
    assert "not in it: all tables except one" in table.stderr
    assert "exists" in refused("export", report)
    assert call("export", report, "-f", "-q").stderr == ""
    chosen = tmp_path / "trace.json"
    assert call("export", "-t", "chrome", "-o", str(chosen), report).exit_code == 0
    assert json.loads(chosen.read_text())["traceEvents"]
    assert not list(tmp_path.glob(".*"))


def test_export_to_a_folder_that_is_not_there(report: str, tmp_path: Path) -> None:
    assert "cannot write" in refused("export", "-o", str(tmp_path / "no" / "x"), report)


@pytest.mark.slow
def test_tables_that_come_unasked_are_silent_without_data(report: str, tmp_path: Path) -> None:
    result = call("stats", report)
    assert "counter" not in result.stdout + result.stderr
    assert (
        "does not contain NVTX counter data"
        in call("stats", "-r", "nvtx_counter_sum,nvtx_sum", report).stderr
    )
    timeline(tmp_path / "nothing.warplens", "main |")
    nothing = call("stats", str(tmp_path / "nothing"))
    assert nothing.exit_code == 1
    assert (
        nothing.stderr == "SKIPPED: nothing.warplens does not contain NVTX, CUDA, CPU or GPU metrics data.\n"
    )  # one line, not one for each
    timeline(tmp_path / "counted.warplens", "main~mem |1 2 3\nmain |[a ]")
    both = call("stats", str(tmp_path / "counted")).stdout
    assert "(nvtx_counter_sum)" in both
    assert "(nvtx_sum)" in both


def test_info_lists_what_is_there(report: str) -> None:
    text = call("info", report).stdout
    assert "nvtx_ranges          4 rows" in text
    assert "empty: tasks, " in text
    assert json.loads(call("info", report, "-f", "json").stdout)["tables"]["tasks"] == 0


def test_info_begins_with_the_diagnostics(tmp_path: Path) -> None:
    note = {"severity": "error", "code": "chunk-lost", "source": "agent", "message": "The disk was full."}
    timeline(tmp_path / "r.warplens", "main |[step ]", diagnostics=[note])
    text = call("info", str(tmp_path / "r.warplens")).stdout
    assert text.index("chunk-lost: The disk was full.") < text.index("Parts") < text.index("nvtx_ranges")


@pytest.mark.slow
def test_duckdb_alone_opens_it_with_the_views_that_are_printed(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "it's é.warplens"
    timeline(path, "main |[step ][step ]")
    printed = CliRunner().invoke(commands, ["info", str(path), "--sql"])
    assert printed.exit_code == 0, printed.output
    with duckdb.connect() as connection:
        connection.execute(printed.stdout)
        assert connection.execute("SELECT message, count(*) FROM nvtx_ranges GROUP BY 1").fetchall() == [
            ("step", 2)
        ]
        assert connection.execute("SELECT count(*) FROM kernels").fetchall() == [(0,)]
