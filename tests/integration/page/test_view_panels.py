"""The panels below the timeline in a real browser: findings, tables, steps, flame graphs, SQL, and two reports beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.page.browsing import Visit, served, visiting
from tests.support.page.viewed_training import TICK, training

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = [pytest.mark.require("page"), pytest.mark.every_browser]
STEP = 87 * TICK


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("panels")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with served(training(folder / "run.warplens"), cwd=folder) as started:
        yield started.url


@pytest.fixture
def visit(browser: Browser, url: str) -> Iterator[Visit]:
    with visiting(browser, url) as opened:
        yield opened


def panel(visit: Visit, name: str) -> Locator:
    """Open a panel."""
    visit.page.get_by_role("tab", name=name, exact=True).click()
    return visit.page.get_by_role("tabpanel")


def test_a_finding_leads_to_its_evidence(visit: Visit) -> None:
    before = visit.view()
    visit.page.get_by_role("listbox", name=re.compile("Findings")).get_by_role("option").first.click()
    visit.page.get_by_role("table", name="Evidence").get_by_role("button").first.click()
    near = visit.moved(before)
    assert near[1] - near[0] < before[1] - before[0]


def test_tables_are_sorted_and_filtered(visit: Visit) -> None:
    shown = panel(visit, "Stats")
    shown.get_by_role("option", name="NVTX Range Summary").click()
    table = shown.get_by_role("grid")
    table.get_by_text(":step").first.wait_for()
    shown.get_by_role("searchbox", name=re.compile("Filter the rows")).fill("optimizer")
    table.get_by_text(":step").first.wait_for(state="hidden")
    assert table.get_by_text(":optimizer").count() == 1
    shown.get_by_role("searchbox", name=re.compile("Filter the rows")).fill("")
    table.get_by_role("button", name=re.compile("Total Time")).click()
    table.get_by_role("columnheader", name=re.compile("Total Time")).and_(
        visit.page.locator("[aria-sort$=cending]")
    ).wait_for()


def test_sql_answers_lead_to_the_timeline(visit: Visit) -> None:
    shown = panel(visit, "SQL")
    shown.get_by_role("textbox", name=re.compile("SQL")).fill(
        "SELECT id, start, name FROM kernels WHERE name = 'adam' ORDER BY start"
    )
    shown.get_by_role("button", name="Run").click()
    row = shown.get_by_role("grid").get_by_role("row").filter(has_text="adam").nth(2)
    row.dblclick()
    visit.until("() => /[#&]e=0\\.kernels\\./.test(location.hash)")


def test_sql_that_writes_is_refused_in_words(visit: Visit) -> None:
    shown = panel(visit, "SQL")
    shown.get_by_role("textbox", name=re.compile("SQL")).fill("COPY kernels TO 'out.csv'")
    shown.get_by_role("button", name="Run").click()
    shown.get_by_role("alert").wait_for()
    visit.complaints.clear()  # the browser itself logs every answer that is no success


def test_steps_are_there_to_go_to(visit: Visit) -> None:
    before = visit.view()
    shown = panel(visit, "Steps")
    shown.get_by_role("slider", name=re.compile("Steps")).focus()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("Enter")
    near = visit.moved(before)
    assert near[1] - near[0] < before[1] - before[0]


@pytest.mark.parametrize("name", ["Flame", "Memory", "Diagnostics", "Selection"])
def test_every_panel_opens(visit: Visit, name: str) -> None:
    shown = panel(visit, name)
    visit.until(
        "() => document.querySelector('[role=tabpanel] [aria-busy=true], [role=tabpanel] .p-wait') === null"
    )
    assert shown.inner_text().strip()
    assert shown.get_by_role("alert").count() == 0


def test_two_reports_are_laid_on_each_other(browser: Browser, folder: Path) -> None:
    before, after = (
        training(folder / "before.warplens", steps=3),
        training(folder / "after.warplens", steps=3, slower=2),
    )
    with served(before, after, cwd=folder) as server, visiting(browser, server.url) as visit:
        assert visit.row("A: before").count() == 1
        assert visit.row("B: after").count() == 1
        shown = panel(visit, "Diff")
        shown.get_by_role("grid").first.get_by_role("row").nth(1).wait_for()
        assert shown.get_by_role("alert").count() == 0
