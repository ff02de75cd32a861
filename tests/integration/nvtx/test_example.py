"""The training program that everybody meets first: it learns, it is annotated through and through, and its fault shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment, warplens
from tests.support.reports.querying import rows
from tests.support.thorough import few

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "train.py"
STEPS = 20

pytestmark = pytest.mark.require("native")


def train(folder: Path, *words: str, script: Path = EXAMPLE) -> tuple[list[float], Path]:
    """Profile the example; return the losses that it printed, and the report."""
    done = warplens(
        "profile", "-q", "-o", "train", sys.executable, script, *words, cwd=folder, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)], folder / "train.warplens"


COUNTS = "SELECT domain, message, count(*)::INT FROM nvtx_ranges GROUP BY ALL"


def test_the_example_learns_and_its_ranges_are_in_the_report(tmp_path: Path) -> None:
    losses, report = train(tmp_path, "--epochs", "3")
    assert losses[0] > 3 * losses[2] > 0
    counts = {(domain, name): count for domain, name, count in rows(report, COUNTS)}
    for name in ("step", "load", "forward", "backward", "optimizer"):
        assert counts[None, name] == 3 * STEPS
    assert counts[None, "epoch"] == counts[None, "evaluate"] == 3
    assert counts["loader", "unpack"] == 3 * STEPS * 256
    # What is nested in what, and what each tells.
    inside = "SELECT DISTINCT p.message FROM nvtx_ranges r JOIN nvtx_ranges p ON p.id = r.parent WHERE r.message = "
    assert rows(report, inside + "'step'") == rows(report, inside + "'evaluate'") == [("epoch",)]
    assert rows(report, inside + "'load'") == rows(report, inside + "'backward'") == [("step",)]
    assert rows(report, inside + "'unpack'") == [("prepare",)]
    numbers = "SELECT list_sort(list(DISTINCT payload_int)) AS l FROM nvtx_ranges WHERE message = 'step'"
    assert rows(report, numbers) == [(list(range(STEPS)),)]
    marked = rows(report, "SELECT payload_float FROM nvtx_marks WHERE message = 'loss' ORDER BY start")
    learned = rows(report, "SELECT payload_float FROM nvtx_ranges WHERE message = 'backward' ORDER BY start")
    assert marked == learned
    assert marked[0][0] > marked[-1][0]
    names = {name for (name,) in rows(report, "SELECT name FROM threads")}
    assert names == {"training", "loader 0", "loader 1", "evaluation"}
    # Of a machine whose clock is being set the report says so; that is no fault of the program.
    assert rows(report, "SELECT count(*)::INT AS n FROM diagnostics WHERE code != 'clock-corrected'") == [
        (0,)
    ]


def test_the_cure_takes_the_cause_away(tmp_path: Path) -> None:
    losses, report = train(tmp_path, "--epochs", "2", "--fix")
    assert losses[0] > losses[1] > 0
    assert ("loader", "unpack", 2 * STEPS * 4) in rows(report, COUNTS)


@pytest.mark.parametrize("method", few(["spawn", "fork", "forkserver"]))
def test_its_workers_are_there_however_they_are_started(method: str, tmp_path: Path) -> None:
    _, report = train(tmp_path, "--epochs", "1", "--fix", "--start-method", method)
    scored = "SELECT sum(payload_int)::INT AS images, bool_or(p.primary) AS m FROM nvtx_ranges r JOIN processes p USING (process)"
    assert rows(report, scored + " WHERE message = 'score'") == [(2048, False)]


@pytest.mark.require("nvtx")
@pytest.mark.exhaustive
def test_with_pypi_nvtx_it_is_the_same_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.count("import warplens.nvtx as nvtx") == 1
    script.write_text(text.replace("import warplens.nvtx as nvtx", "import nvtx"), encoding="utf-8")
    for name, path in (("theirs", script), ("ours", EXAMPLE)):
        (tmp_path / name).mkdir()
        train(tmp_path / name, "--epochs", "1", "--fix", script=path)
    told = """SELECT message, domain, category, color, payload_int, count(*) AS n FROM nvtx_ranges
              WHERE message != 'score' GROUP BY ALL ORDER BY ALL"""
    assert rows(tmp_path / "theirs" / "train.warplens", told) == rows(
        tmp_path / "ours" / "train.warplens", told
    )
