"""Training steps: which ranges are taken for them, and what they are numbered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.stats.drawing import line
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
def test_other_names_are_no_steps(tmp_path: Path, name: str) -> None:
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


FETCH, OPTIMIZER = "enumerate(DataLoader)#_It.__next__", "Optimizer.step#Adam.step"
WIDE = 50  # ticks of a letter


def spans(path: Path, letters: str) -> list[tuple[int, int]]:
    """Steps, by letters, of a program with a fetch for each f, a step of an optimizer for each o, other work for each dot."""
    ranges = {"f": FETCH, "o": OPTIMIZER}
    drawings = [
        (WIDE * place, WIDE * place + WIDE - 1, f"[{ranges[letter]}")
        for place, letter in enumerate(letters)
        if letter in ranges
    ]
    rows = found(drawn(path, line("main", *drawings)))
    return [(round(start / WIDE), -(-end // WIDE)) for _, _, start, end in rows]


def test_without_names_they_lie_between_fetches_with_an_optimizer(tmp_path: Path) -> None:
    assert spans(tmp_path, "f.of.of.o") == [(0, 3), (3, 6), (6, 9)]


def test_two_optimizers_after_one_fetch_are_one_step(tmp_path: Path) -> None:
    assert spans(tmp_path, "f.oof.oof") == [(0, 4), (4, 8)]


def test_fetches_of_accumulated_gradients_are_one_step(tmp_path: Path) -> None:
    assert spans(tmp_path, "f.f.of.f.of") == [(0, 5), (5, 10)]


def test_an_evaluation_between_epochs_is_in_no_step(tmp_path: Path) -> None:
    # The fetch that finds nothing ends the last step; those of the evaluation begin none.
    assert spans(tmp_path, "f.of.offfff.of.of") == [(0, 3), (3, 6), (10, 13), (13, 16)]


def test_without_a_loader_they_lie_between_steps_of_the_optimizer(tmp_path: Path) -> None:
    assert spans(tmp_path, "..o..o..o..o") == [(3, 6), (6, 9), (9, 12)]


def test_names_of_the_program_come_first(tmp_path: Path) -> None:
    report = drawn(tmp_path, f"main |[step    ] [step    ]\nmain | [{OPTIMIZER[:4]}]")
    assert [row[1] for row in found(report)] == ["step", "step"]
