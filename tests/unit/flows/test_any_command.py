"""Every command on reports whose rows have no length, all the same times, or times before zero, in every table: no traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.optional_dependencies import ROOT
from tests.support.reports.odd_report import TIMES, odd
from tests.support.thorough import alike
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import WarplensError
from warplens.flows.viewing import view_of
from warplens.importers.importing import import_file
from warplens.model.tables import TABLES
from warplens.recipes.engine import PartTask, Result, compute, run
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge
from warplens.viewer.answers.answers import Answers

pytestmark = [pytest.mark.slow, pytest.mark.require("native", "duckdb")]
DATA = ROOT.parent / "shared" / "data"
REAL = sorted(
    str(path.relative_to(DATA))
    for pattern in ("nsys/*.sqlite", "kineto/*", "stragglers/timeline*", "stragglers/*.parquet")
    for path in DATA.glob(pattern)
) or ["none"]
_HAPPEN = sorted(
    name for name, table in TABLES.items() if table.edges and name not in ("processes", "threads")
)


def words(report: Path, out: Path) -> Iterator[list[str]]:
    """Yield a command line of each command that reads reports."""
    path = str(report)
    yield ["info", path]
    yield ["analyze", "--details", "all", path]
    yield ["analyze", "-f", "json", path]
    yield ["analyze", "-f", "markdown", path]
    yield ["timeline", path]
    yield ["timeline", "--ascii", "--width", "40", path]
    for kind in ("auto", "native", "osrt", "tasks"):
        yield ["flame", "--wall", *(["--kind", kind] if kind != "auto" else []), path]
    yield ["flame", "--baseline", path, path]
    yield ["diff", path, path]
    yield ["diff", "-f", "json", path, path]
    yield ["query", path, "SELECT 1"]
    yield ["source", path]
    yield ["stats", "--all", path]
    yield ["view", "--export", str(out / "page.html"), path]
    for unit in catalog.units("exporters.formats"):
        yield ["export", "-t", unit.id, "-o", str(out / unit.id), path]


def traceback(line: list[str]) -> str:
    """Run a command; return what went wrong inside, empty where it answered or said why it cannot."""
    result = CliRunner().invoke(commands, line)
    error = result.exception
    if error is None or isinstance(error, (SystemExit, WarplensError)):
        return ""
    where = result.exc_info[2] if result.exc_info else None
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = (
        f"{where.tb_frame.f_code.co_filename.rpartition('/')[2]}:{where.tb_lineno}"
        if where is not None
        else "?"
    )
    return f"{' '.join(line[:3])}: {type(error).__name__}: {error} ({place})"


def answered(report: Path) -> list[str]:
    """Ask every table of `stats` and every rule, and the page for each of its tracks; return what went wrong inside."""
    wrong = []
    with open_report(report) as opened:
        for unit in catalog.units("stats.tables"):
            try:
                with suppress(WarplensError):
                    unit.load().table(opened, Selection())
            except Exception as error:  # each table is asked, whatever another one does
                wrong.append(f"stats -r {unit.id}: {type(error).__name__}: {error}")
        for unit in catalog.units("rules.checks"):
            try:
                judge(opened, Selection(), [unit.id])
            except Exception as error:
                wrong.append(f"analyze -r {unit.id}: {type(error).__name__}: {error}")
        answers = Answers(view_of([opened]))
        try:
            answers.tracks(0)
        except Exception as error:
            wrong.append(f"view: {type(error).__name__}: {error}")
        finally:
            answers.close()
    return wrong


class HerePool:
    """Computes the parts of a recipe here. What went wrong inside is raised, while the engine leaves such a report out."""

    def run(self, work: Sequence[PartTask]) -> Iterator[Result]:
        for result in map(compute, work):
            if re.search(r": \w+(Error|Exception): ", result.error):
                raise AssertionError(result.error)
            yield result


def recipes_answered(report: Path) -> list[str]:
    """Ask every recipe; return what went wrong inside."""
    wrong = []
    for unit in catalog.units("recipes.questions"):
        options = {"stat": "cuda_gpu_kern_sum"} if unit.id == "sums" else {}
        try:
            with suppress(WarplensError):
                run(unit.id, [report], HerePool(), options=options)
        except Exception as error:
            wrong.append(f"recipe {unit.id}: {type(error).__name__}: {error}")
    return wrong


@pytest.mark.parametrize(
    "kind",
    alike(TIMES, "no row", "a thread without length", "before zero"),
)
def test_rows_in_every_table(tmp_path: Path, kind: str) -> None:
    report = odd(tmp_path / "odd.warplens", kind)
    (tmp_path / "out").mkdir()
    wrong = recipes_answered(report) + answered(report)
    wrong += [text for line in words(report, tmp_path / "out") if (text := traceback(line))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the recordings of real GPUs are not here ({DATA})")
@pytest.mark.parametrize("name", alike(REAL, "nsys/mock.sqlite", "kineto/tracelens_b200_eager.json.gz"))
def test_recordings_of_others(tmp_path: Path, name: str) -> None:
    import_file(DATA / name, tmp_path / "real.warplens")
    (tmp_path / "out").mkdir()
    report = tmp_path / "real.warplens"
    wrong = (
        recipes_answered(report)
        + answered(report)
        + [text for line in words(report, tmp_path / "out") if (text := traceback(line))]
    )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("table", alike(_HAPPEN, "samples"))
def test_rows_in_one_table(tmp_path: Path, table: str) -> None:
    """A thread, or a device, whose only rows have no length."""
    wrong = []
    for number, kind in enumerate(("one row without length", "a thread without length", "before zero")):
        report = odd(tmp_path / f"{number}.warplens", kind, [table, "frames"])
        (out := tmp_path / f"out{number}").mkdir()
        wrong += [f"{kind}: {text}" for text in answered(report)]
        wrong += [
            f"{kind}: {text}"
            for line in words(report, out)
            if line[0] in ("timeline", "analyze", "info") and (text := traceback(line))
        ]
    assert not wrong, "\n".join(wrong)
