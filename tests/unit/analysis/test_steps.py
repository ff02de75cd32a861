"""Training steps: which ranges are taken for them, and what they are numbered."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

TICK, ORIGIN = 1_000, 1_000_000_000


def drawn(path: Path, picture: str) -> Report:
    timeline(path / "r.warplens", picture, tick_ns=TICK, origin=ORIGIN)
    return open_report(path / "r.warplens")


def found(
    report: Report, name: str | None = None, selection: Selection | None = None
) -> list[tuple[int, str, int, int]]:
    rows = steps(report, selection or Selection(), name).to_pylist()
    return [
        (row["index"], row["name"], (row["start"] - ORIGIN) // TICK, (row["end"] - ORIGIN) // TICK)
        for row in rows
    ]


def test_the_profilers_steps_come_first(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        """
        main |[step                  ][step                  ]
        main |  [ProfilerStep#7 ]
        """,
    )
    assert found(report) == [(0, "ProfilerStep#7", 2, 19)]
    assert [row[1] for row in found(report, "step")] == ["step", "step"]


@pytest.mark.parametrize(
    "name",
    ["step", "train_step", "Iteration", "batch", "step_#", "iter:#", "training-step.#", "run_training_batch"],
)
def test_names_that_people_give(tmp_path: Path, name: str) -> None:
    first, second = (name.replace("#", str(number)) for number in (1, 2))
    report = drawn(tmp_path, f"main |[{first:<20}]  [{second:<10}]\nmain |  [load ]")
    assert [(index, text) for index, text, _, _ in found(report)] == [(0, first), (1, second)]


@pytest.mark.parametrize(
    "name", ["load", "Optimizer.step#SGD.step", "epoch", "stepping", "load_batch", "batch_norm"]
)
def test_what_is_no_step(tmp_path: Path, name: str) -> None:
    report = drawn(tmp_path, f"main |[{name:<24}]  [{name:<24}]")
    with pytest.raises(MissingData, match=r"`:step=NAME` says which"):
        steps(report, Selection())
    assert len(found(report, name)) == 2


def test_a_name_that_occurs_once_is_no_step_unless_it_is_asked_for(tmp_path: Path) -> None:
    report = drawn(tmp_path, "main |[step    ]")
    with pytest.raises(MissingData):
        steps(report, Selection())
    assert len(found(report, "step")) == 1
    with pytest.raises(MissingData, match="'other'"):
        steps(report, Selection(), "other")


@pytest.mark.slow
def test_the_outermost_on_the_thread_that_has_most(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        """
        main  |[step                ][step             ]
        main  |  [step   ]  [batch][batch]
        other |[step ][step ]
        """,
    )
    assert found(report) == [(0, "step", 0, 22), (1, "step", 22, 41)]


@pytest.mark.slow
def test_each_process_has_its_own_and_numbers_stay_in_a_selection(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        """
        a/main |[step   ][step   ][step   ]
        b/main |[iter   ][iter   ]
        """,
    )
    assert [row[:2] for row in found(report)] == [
        (0, "step"),
        (1, "step"),
        (2, "step"),
        (0, "iter"),
        (1, "iter"),
    ]
    assert found(report, selection=Selection((10 * TICK, 18 * TICK))) == [
        (1, "step", 9, 18),
        (1, "iter", 9, 18),
    ]
    with pytest.raises(MissingData, match="in the selected part"):
        steps(report, Selection((40 * TICK, 50 * TICK)))
