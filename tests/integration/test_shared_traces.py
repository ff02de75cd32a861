"""Every command on recordings of other people's programs: an answer or an error of ours, and savings that there is room for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.optional_dependencies import ROOT
from tests.support.reports.judged import claims_without_idle_time
from tests.support.reports.real_recordings import some
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import MissingData, WarplensError
from warplens.importers.importing import import_file
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge
from warplens.stats.tables.time_ledger import table

SHARED = ROOT.parent / "shared" / "data"
# Results, not recordings: their tables are no tables of nsys.
OTHERS = [
    str(path.relative_to(SHARED))
    for pattern in (
        "jax_toolbox/**/*.parquet",
        "jax_toolbox/**/*.xz",
        "stragglers/m*-*",
        "stragglers/result*",
    )
    for path in sorted(SHARED.glob(pattern))
]
TRACES = [
    str(path.relative_to(SHARED))
    for pattern in (
        "kineto/dlrm_8ranks/rank0.json.gz",
        "kineto/*.gz",
        "kineto/dlrm_8ranks",
        "nsys/*.sqlite",
        "stragglers/timeline*.json.gz",
        "stragglers/*.parquet",
    )
    for path in sorted(SHARED.glob(pattern))
]
pytestmark = [
    pytest.mark.require("native", "duckdb"),
    pytest.mark.skipif(not TRACES, reason="the recordings of others are not beside the checkout"),
]
COMMANDS = (
    ("timeline",),
    ("info",),
    ("stats",),
    ("stats", "--all"),
    ("analyze", "--details", "all", "--why-not"),
    ("flame",),
    ("source",),
    ("query", "SHOW TABLES"),
    *(("export", "-f", "-t", unit.id) for unit in catalog.units("exporters.formats")),
    *(("stats", "-r", unit.id) for unit in catalog.units("stats.tables")),
    ("stats", "-r", "time_ledger:per-step"),
    *(("recipe", unit.id, "-j", "1") for unit in catalog.units("recipes.questions") if unit.id != "sums"),
    ("recipe", "nvtx_sum", "-j", "1"),
)


@pytest.fixture(scope="module", params=some(TRACES))
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a recording."""
    path = tmp_path_factory.mktemp("trace") / "run.warplens"
    import_file(SHARED / request.param, path)
    return path


def run(report: Path, words: tuple[str, ...]) -> None:
    command, *rest = words
    named = [rest.pop(0)] if command == "recipe" else []
    result = CliRunner().invoke(commands, [command, *named, str(report), *rest])
    if result.exception is not None and not isinstance(result.exception, (WarplensError, SystemExit)):
        raise result.exception
    assert result.exit_code in (0, 1), (words, result.output)
    assert "Traceback" not in result.output


@pytest.mark.exhaustive  # tests/unit/flows/test_any_command.py asks the commands without options
def test_every_command_answers(trace: Path, tmp_path: Path) -> None:
    for words in COMMANDS:
        out = ("-o", str(tmp_path / words[3])) if words[0] == "export" else ()
        run(trace, (*words, *out))
    run(trace, ("diff", str(trace), "--no-rules"))
    run(trace, ("view", "--export", str(tmp_path / "page.html")))


def test_no_finding_claims_idle_time_that_is_not_there(trace: Path) -> None:
    with open_report(trace) as report:
        judgement = judge(report, Selection())
        assert not claims_without_idle_time(report, judgement)
        for finding in judgement.findings:
            assert (finding.estimate or 0) <= (finding.bound or 0), finding.title
            assert (finding.bound or 0) <= judgement.span, finding.title
        assert whole_ledgers(report)


def test_other_files_are_named_and_refused(tmp_path: Path) -> None:
    """Each command that opens a file says what it is not: no recording."""
    for name in OTHERS:
        with pytest.raises(WarplensError):
            import_file(SHARED / name, tmp_path / "none.warplens")
        assert not (tmp_path / "none.warplens").exists()


def test_every_file_beside_the_checkout_is_asked() -> None:
    asked = {SHARED / name for name in (*TRACES, *OTHERS)}
    files = {path for path in SHARED.rglob("*") if path.is_file() and path.parent.name != "licenses"}
    left = {path for path in files - asked if not asked.intersection(path.parents)}
    assert {path.name for path in left} <= {"ORIGIN.md", "nvtx_gpu_proj_trace.nsys-analysis"}


def whole_ledgers(report: Report) -> bool:
    """Say whether the causes of each GPU, and of each thread, add up to all of its time."""
    sums: dict[str, float] = {}
    try:
        rows = table(report, Selection()).to_pylist()
    except MissingData:
        return True
    for row in rows:
        sums[row["Where"]] = sums.get(row["Where"], 0.0) + row["Time (%)"]
    return all(abs(total - 100) < 0.01 for total in sums.values())
