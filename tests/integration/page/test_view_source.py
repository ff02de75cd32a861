"""The source lines in the page, in a real browser: from a box of the flame graph, from the stack of a sample, and by file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.page.browsing import Visit, served, visiting
from tests.support.reports import cpu_story

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = [pytest.mark.require("page"), pytest.mark.every_browser]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(cpu_story.write_program(folder), cwd=folder) as started:
        yield started.url


@pytest.fixture
def visit(browser: Browser, url: str) -> Iterator[Visit]:
    with visiting(browser, url) as opened:
        yield opened


def line(visit: Visit, number: int) -> Locator:
    return visit.page.locator(f".p-source [data-line='{number}']")


def heat(of: Locator) -> float:
    return float(of.evaluate("row => getComputedStyle(row).backgroundColor").rpartition(",")[2].strip(" )"))


def test_a_box_of_the_flame_graph_leads_to_its_lines(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("tab", name="Flame", exact=True).click()
    panel = page.get_by_role("tabpanel")
    panel.get_by_role("tab", name="CPU samples").click()
    graph = panel.get_by_role("tree")
    graph.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    panel.locator("[aria-label='Zoomed to'] b", has_text="main").wait_for()
    panel.get_by_role("button", name="Source").click()
    wanted = line(visit, 70)
    wanted.and_(page.locator(".p-wanted")).wait_for()
    assert wanted.is_visible()
    assert line(visit, 80).inner_text().split() == ["80", "95.2", "%", "11.9", "%", "line", "80"]
    assert heat(line(visit, 80)) > heat(line(visit, 20)) > heat(line(visit, 79)) == 0


def test_a_frame_of_a_sample_leads_to_its_line(visit: Visit) -> None:
    visit.page.mouse.click(*visit.point("Python samples", 700_000))
    visit.page.get_by_role("button", name=re.compile(r"model\.py:9$")).click()
    line(visit, 9).and_(visit.page.locator(".p-wanted")).wait_for()
    assert line(visit, 9).inner_text().split()[-2:] == ["model", "9"]


def test_another_file_and_the_other_share_can_be_chosen(visit: Visit, folder: Path) -> None:
    visit.page.keyboard.press("o")
    panel = visit.page.get_by_role("tabpanel")
    line(visit, 80).wait_for()
    assert heat(line(visit, 80)) > heat(line(visit, 20))
    panel.get_by_role("tab", name="Self").click()
    visit.until(
        "() => document.querySelector('[data-line=\"20\"]').style.getPropertyValue('--heat') === '0.70'"
    )
    assert heat(line(visit, 20)) > heat(line(visit, 80))
    panel.get_by_role("combobox", name="File").select_option(value=f"{folder}/loader.py")
    panel.get_by_text("the file is not on this machine: lines are shown by their functions").wait_for()
    assert line(visit, 12).inner_text().endswith("in fetch")
