"""The page brings its first answers where they are there, as data that no name breaks out of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.page.viewing import PICTURE
from warplens.errors import ReportError
from warplens.flows.viewing import view_of
from warplens.report import open as open_report
from warplens.testing.timeline import timeline
from warplens.viewer.answers.answers import Answers
from warplens.viewer.bundle import NOT_BUILT
from warplens.viewer.server import preload_page as module
from warplens.viewer.server.preload_page import preloaded

PAGE = b'<!doctype html><html><body><div id="app"></div></body></html>\n'


class Blocks(HTMLParser):
    """What an HTML parser finds: elements, and the text of scripts."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    path = tmp_path / "run.warplens"
    timeline(path, PICTURE)
    with open_report(path) as found:
        yield Answers(view_of([found]))


def test_a_page_comes_without_answers_if_a_report_cannot_be_shown(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(report: object) -> None:
        raise ReportError("it would fill the memory")

    monkeypatch.setattr("warplens.viewer.answers.loaded_report.check_size", refuse)
    assert preloaded(PAGE, answers) == PAGE
    with pytest.raises(
        ReportError, match="fill the memory"
    ):  # the page asks for them, and says why there are none
        answers.tracks(0)
    assert preloaded(PAGE, answers) == PAGE


def test_a_page_comes_without_answers_if_a_report_changes(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.tracks(0)
    (opened,) = answers.view.reports
    meta = answers.meta

    def late() -> object:
        opened.generation += 1
        return meta()

    monkeypatch.setattr(answers, "meta", late)
    assert preloaded(PAGE, answers) == PAGE
    monkeypatch.undo()
    assert preloaded(PAGE, answers) != PAGE


def test_a_page_comes_with_the_ready_answers(answers: Answers) -> None:
    assert preloaded(PAGE, answers) == PAGE  # nobody waits for rows that are still to be made
    tree = answers.tracks(0)
    answers.view.title = title = '</script><!--<script>alert(1)</script>\u2028"é\ud800'
    page = preloaded(PAGE, answers)
    blocks = Blocks(page)
    assert [tag for tag, _ in blocks.elements] == ["html", "body", "div", "script"]
    assert blocks.elements[-1][1] == {"type": "application/json", "id": "first"}
    assert page.count(b"</script") == 1
    first = json.loads(blocks.scripts[0])
    assert first["meta"] == {**answers.meta(), "title": title}
    assert first["tracks"] == json.loads(json.dumps([tree]))


def test_a_page_comes_without_answers_that_are_too_large(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.tracks(0)
    assert preloaded(NOT_BUILT.encode(), answers) == NOT_BUILT.encode()
    assert preloaded(PAGE, answers) != PAGE
    monkeypatch.setattr(module, "_MOST", 100)
    assert preloaded(PAGE, answers) == PAGE
