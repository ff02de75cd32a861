"""What the page looks like in a real browser: dark and light, hostile names, and pictures that it is held to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.page.browsing import Visit, served, visiting
from tests.support.page.pictures import differing, kept
from tests.support.page.viewed_training import training
from tests.support.reports.hostile_names import NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.require("page")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("looks")
    with served(training(folder / "run.warplens"), cwd=folder) as started:
        yield started.url


@pytest.mark.every_browser
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_dark_if_the_system_is(browser: Browser, url: str, dark: bool) -> None:
    with visiting(browser, url, dark=dark) as visit:
        assert visit.page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        assert (_brightness(visit) < 100) == dark
        for _ in range(2):  # system, dark, light
            visit.page.keyboard.press("t")
        visit.until("() => document.documentElement.dataset.theme === 'light'")
        visit.settled()
        assert _brightness(visit) > 150


@pytest.mark.parametrize(("name", "dark"), [("light", False), ("dark", True)])
def test_the_page_looks_like_the_golden_picture(
    browser: Browser, url: str, tmp_path: Path, name: str, dark: bool
) -> None:
    with visiting(browser, url, dark=dark) as visit:
        # Names are drawn with the fonts of the machine: what is compared is where things are and which colours they have.
        visit.page.mouse.move(1, 1)
        visit.settled()
        picture = visit.page.locator(".tl-body canvas").first.screenshot()
    share = differing(kept(f"view-{name}.png", picture), picture, tmp_path / f"view-{name}.png")
    assert share <= 0.05, (
        f"{share:.1%} of the picture changed: see {tmp_path}; WARPLENS_PICTURES=keep keeps the new one"
    )


@pytest.mark.every_browser
def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    renamed = dict(zip(("step", "load", "forward", "backward", "optimizer"), NAMES, strict=True))
    report = training(
        tmp_path / "<b>run.warplens", steps=2, rename=renamed, command=("<script>window.broken=7</script>",)
    )
    with served(report, cwd=tmp_path) as server, visiting(browser, server.url) as visit:
        for lane in (0, 1):
            visit.page.mouse.click(*visit.point("NVTX", 300_000, lane))
            visit.until("() => /[#&]e=0\\.nvtx_ranges\\./.test(location.hash)")
        for tab in ("Stats", "Flame", "Steps", "SQL", "Findings"):
            visit.page.get_by_role("tab", name=tab, exact=True).click()
            visit.until("() => document.querySelector('[role=tabpanel] [aria-busy=true]') === null")
        visit.page.keyboard.press("/")
        visit.page.keyboard.type("<script>")
        visit.page.keyboard.press("Enter")
        visit.until("() => /[#&]s=/.test(location.hash)")
        visit.settled()
        assert visit.page.evaluate("window.broken") is None
        assert visit.page.locator("script").count() == 1
        assert visit.page.locator("main img, main b > script").count() == 0
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        assert width == visit.page.evaluate("innerWidth"), "a name makes the page wider than the window"


@pytest.mark.every_browser("always")
def test_the_page_fits_into_1280_by_720(browser: Browser, url: str) -> None:
    with visiting(browser, url, size=(1280, 720)) as visit:
        sizes = visit.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.scrollHeight, innerWidth, innerHeight]"
        )
        assert sizes[:2] == sizes[2:]
        cut = visit.page.evaluate(
            """() => [...document.querySelectorAll('header.toolbar *')].filter((one) => {
              const box = one.getBoundingClientRect();
              return box.width > 0 && (box.right > innerWidth || box.left < 0);
            }).map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert cut == []


def _brightness(visit: Visit) -> float:
    """Mean of a row of the page's pixels, 0 to 255."""
    from tests.support.page.pictures import pixels

    _, _, rows = pixels(visit.page.screenshot())
    return sum(rows) / len(rows)
