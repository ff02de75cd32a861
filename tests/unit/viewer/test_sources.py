"""Source lines for the page: the shares of `warplens source`, and no file that no sample was in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports import cpu_story
from warplens.errors import MissingData
from warplens.flows.viewing import view_of
from warplens.report import open as open_report
from warplens.testing.timeline import timeline
from warplens.viewer.answers.answers import Answers


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    with open_report(cpu_story.write_program(tmp_path)) as report:
        yield Answers(view_of([report]))


def line(found: dict[str, Any], number: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [row for row in found["lines"] if row["line"] == number]
    (row,) = rows
    return row


def test_the_hottest_file_comes_first_with_every_line(answers: Answers, tmp_path: Path) -> None:
    found = answers.source(0)
    assert (found["path"], found["note"]) == (f"{tmp_path}/train.py", "")
    names = [Path(file["path"]).name for file in found["files"]]
    assert names[:2] == ["train.py", "model.py"]
    assert sorted(names[2:]) == ["loader.py", "threading.py"]
    assert [row["line"] for row in found["lines"]] == list(range(1, 101))
    main = line(found, 80)
    assert (main["text"], main["function"], round(main["total"], 3), round(main["self"], 3)) == (
        "line 80",
        "main",
        0.952,
        0.119,
    )
    assert set(line(found, 79)) == {"line", "text"}


def test_a_part_of_the_time_has_its_own_shares(answers: Answers, tmp_path: Path) -> None:
    found = answers.source(0, f"{tmp_path}/model.py", 500_000, 900_000)
    assert [row["line"] for row in found["lines"]] == list(range(1, 13))
    assert line(found, 9)["self"] > 0.9
    with pytest.raises(MissingData, match=r"samples of .*model\.py"):
        answers.source(0, f"{tmp_path}/model.py", 0, 200_000)


@pytest.mark.parametrize(
    "path",
    [
        lambda folder: "/etc/passwd",
        lambda folder: f"{folder}/secret.py",
        lambda folder: f"{folder}/../{folder.name}/train.py",
        lambda folder: f"{folder}/./train.py",
        lambda folder: "train.py",
        lambda folder: f"{folder}/train.py\0",
    ],
)
def test_no_other_file_is_read(answers: Answers, tmp_path: Path, path: Callable[[Path], str]) -> None:
    (tmp_path / "secret.py").write_text("SECRET = 1")
    with pytest.raises(MissingData, match="does not contain samples of"):
        answers.source(0, path(tmp_path))


def test_a_report_cannot_have_other_files_read_than_those_of_python(tmp_path: Path) -> None:
    """A report of somebody else may name any file."""
    (tmp_path / "train.py").symlink_to("/dev/zero")
    (tmp_path / "model.py").mkdir()
    cpu_story.write(tmp_path / "run.warplens", app=str(tmp_path))
    with open_report(tmp_path / "run.warplens") as report:
        answers = Answers(view_of([report]))
        for name in ("train.py", "model.py"):
            found = answers.source(0, f"{tmp_path}/{name}")
            assert found["note"] == "the file is not on this machine: lines are shown by their functions"
            assert {row["text"] for row in found["lines"]} == {None}
            assert all(row["function"] for row in found["lines"])


def test_long_files_and_libraries_are_shown_around_their_hot_lines(answers: Answers, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\n".join(f"line {number}" for number in range(1, 3_001)))
    assert [row["line"] for row in answers.source(0)["lines"]] == [
        *range(15, 28),
        *range(45, 56),
        *range(75, 96),
    ]


def test_without_python_samples_there_are_no_lines(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main |{task }")
    with (
        open_report(tmp_path / "run.warplens") as report,
        pytest.raises(MissingData, match="does not contain Python samples"),
    ):
        Answers(view_of([report])).source(0)


def test_functions_of_a_flame_graph_say_where_they_are(answers: Answers, tmp_path: Path) -> None:
    nodes, places = [answers.flame(0, "samples")["root"]], {}
    while nodes:
        node = nodes.pop()
        places[node["name"]] = node.get("place")
        nodes += node["children"]
    assert places["step"] == f"{tmp_path}/train.py:40"
    assert places["memcpy"] is None
