"""`warplens view --export`: a page that opens from disk, answers from what it holds, and is not broken out of by any name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.page.browsing import Visit, visiting
from tests.support.page.viewed_training import TICK, training
from tests.support.programs.launching import warplens
from tests.support.reports.hostile_names import NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.require("page"), pytest.mark.every_browser]
STEP = 87 * TICK


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    training(folder / "run.warplens", steps=3)
    ran = warplens("view", "--export", "page.html", "run.warplens", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("page.html (")
    assert "not in it: SQL" in ran.stderr
    alone = folder / "elsewhere" / "page.html"
    alone.parent.mkdir()
    return (folder / "page.html").rename(alone)


@pytest.fixture
def visit(browser: Browser, page: Path) -> Iterator[Visit]:
    with visiting(browser, page.as_uri()) as opened:
        yield opened


def test_an_exported_page_opens_from_disk_and_zooms(visit: Visit) -> None:
    whole = visit.view()
    visit.double_click(*visit.point("NVTX", STEP + 20 * TICK))
    near = visit.moved(whole)
    assert near[1] - near[0] < (whole[1] - whole[0]) / 2
    visit.page.keyboard.press("d")
    assert visit.moved(near)[0] > near[0]


def test_events_have_details_and_lead_to_one_another(visit: Visit) -> None:
    visit.page.mouse.click(*visit.point("CUDA API", STEP + 30 * TICK))
    details = visit.page.get_by_role("complementary", name=re.compile("details", re.IGNORECASE))
    details.get_by_role("button", name=re.compile("gemm_forward")).first.click()
    visit.until("() => /[#&]e=0\\.kernels\\./.test(location.hash)")
    details.get_by_role("heading", name="The longest").wait_for()


def test_search_findings_and_tables_work(visit: Visit) -> None:
    page = visit.page
    assert page.get_by_role("listbox", name=re.compile("Findings")).get_by_role("option").count() > 0
    page.keyboard.press("/")
    page.keyboard.type("adam")
    page.keyboard.press("Enter")
    visit.until("() => /[#&]e=0\\.kernels\\./.test(location.hash)")
    page.get_by_role("tab", name="Stats").click()
    page.get_by_role("option", name="NVTX Range Summary").click()
    page.get_by_role("tabpanel").get_by_text(":step").first.wait_for()


def test_an_exported_page_names_the_command_for_sql(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("tab", name="SQL").click()
    page.get_by_role("textbox", name=re.compile("SQL")).fill("SELECT 1")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("tabpanel").get_by_text(re.compile("warplens view run")).first.wait_for()


def test_names_are_text(browser: Browser, tmp_path: Path) -> None:
    training(
        tmp_path / "run.warplens",
        steps=1,
        rename=dict(zip(("step", "load", "forward", "backward", "optimizer"), NAMES, strict=True)),
    )
    ran = warplens("view", "--export", "page.html", "run.warplens", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    with visiting(browser, (tmp_path / "page.html").as_uri()) as visit:
        assert visit.page.evaluate("window.broken") is None
        assert visit.page.locator("script:not([data-answer])").count() == 1
        visit.page.get_by_role("tab", name="Stats").click()
        visit.page.get_by_role("option", name="NVTX Range Summary").click()
        visit.page.get_by_role("tabpanel").get_by_text("<script>").first.wait_for()
        assert visit.page.evaluate("window.broken") is None


def test_a_page_that_exists_is_kept_unless_told(page: Path) -> None:
    before = page.read_bytes()
    report = page.parents[1] / "run.warplens"
    ran = warplens("view", "--export", page.name, str(report), cwd=page.parent)
    assert ran.returncode == 2
    assert "-f replaces it" in ran.stderr
    assert page.read_bytes() == before
    assert warplens("view", "-f", "--export", page.name, str(report), cwd=page.parent).returncode == 0


def test_export_refuses_follow_and_perfetto(page: Path) -> None:
    report = page.parents[1] / "run.warplens"
    for option in ("--follow", "--perfetto"):
        ran = warplens("view", "--export", "other.html", option, str(report), cwd=page.parent)
        assert ran.returncode == 2, option
        assert "--export" in ran.stderr
