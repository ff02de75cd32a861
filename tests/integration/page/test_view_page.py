"""The timeline in a real browser: what hands do to it, and what it shows then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.page.browsing import Server, Visit, served, visiting
from tests.support.page.viewed_training import STEPS, TICK, training

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.require("page"), pytest.mark.every_browser("always")]
STEP = 87 * TICK  # from one step of the drawn program to the next
INSIDE = 10 * TICK  # in a step: in `load`, in its copy's call


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("view")
    with served(training(folder / "run.warplens"), cwd=folder) as started:
        yield started


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Visit]:
    with visiting(browser, server.url) as opened:
        yield opened


def test_the_page_shows_the_recorded_rows_first(visit: Visit) -> None:
    assert visit.page.title() == "run – warplens"
    assert "token" not in visit.page.url
    for name in ("rank 0: python", "main", "NVTX", "CUDA API", "GPU 0", "Stream 7", "loss"):
        assert visit.row(name).count() == 1, name
    visit.until("() => performance.getEntriesByName('warplens:first').length === 1")


def test_the_second_visit_asks_first_for_the_picture(visit: Visit) -> None:
    visit.page.reload()
    visit.settled()
    asked: list[str] = visit.page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    questions = [url for url in map(urlsplit, asked) if url.path.startswith("/api/")]
    assert questions[0].path == "/api/1/viewport"
    assert not {"/api/1/meta", "/api/1/tracks"} & {url.path for url in questions}  # they came with the page
    assert visit.row("NVTX").count() == 1
    # How wide the timeline would be was guessed: all of the recording, and a little air.
    canvas = visit.page.locator(".tl-body").bounding_box()
    assert canvas is not None
    assert int(parse_qs(questions[0].query)["width"][0]) == pytest.approx(canvas["width"], rel=0.05)


@pytest.mark.parametrize(("key", "narrower"), [("w", True), ("s", False)])
def test_w_and_s_zoom_at_the_pointer(visit: Visit, key: str, narrower: bool) -> None:
    visit.page.get_by_role("button", name="Fit").click()
    before = visit.view()
    x, y = visit.point("NVTX", STEP)
    visit.page.mouse.move(x, y)
    visit.page.keyboard.press("w")
    seen = visit.moved(before)
    if not narrower:
        before = seen
        visit.page.keyboard.press("s")
        seen = visit.moved(before)
    assert (seen[1] - seen[0] < before[1] - before[0]) == narrower
    share = (STEP - seen[0]) / (seen[1] - seen[0])
    canvas = visit.page.locator(".tl-body").bounding_box()
    assert canvas is not None
    assert share == pytest.approx((x - canvas["x"]) / canvas["width"], abs=0.02)


def test_a_and_d_pan(visit: Visit) -> None:
    visit.page.keyboard.press("w")
    visit.page.keyboard.press("w")
    whole = visit.view()
    visit.page.keyboard.press("d")
    later = visit.moved(whole)
    assert later[0] > whole[0]
    visit.page.keyboard.press("a")
    assert visit.moved(later)[0] < later[0]


def test_the_wheel_zooms_with_ctrl_pans_with_shift_and_scrolls(visit: Visit) -> None:
    x, y = visit.point("NVTX", 2 * STEP)
    visit.page.mouse.move(x, y)
    before = visit.view()
    visit.page.keyboard.down("Control")
    visit.page.mouse.wheel(0, -400)
    visit.page.keyboard.up("Control")
    near = visit.moved(before)
    assert near[1] - near[0] < before[1] - before[0]
    visit.page.keyboard.down("Shift")
    visit.page.mouse.wheel(0, 200)
    visit.page.keyboard.up("Shift")
    beside = visit.moved(near)
    assert beside[0] > near[0]
    assert beside[1] - beside[0] == pytest.approx(near[1] - near[0], rel=1e-3)
    top = visit.row("NVTX").bounding_box()
    assert top is not None
    visit.page.mouse.wheel(0, 60)
    visit.until(
        "(y) => document.querySelector('[role=treeitem][aria-label^=NVTX]').getBoundingClientRect().y < y",
        top["y"],
    )


def test_a_click_selects_and_says_everything_about_it(visit: Visit) -> None:
    visit.page.mouse.click(*visit.point("NVTX", 2 * STEP + INSIDE))
    details = visit.page.get_by_role("complementary", name=re.compile("details", re.IGNORECASE))
    details.get_by_text("700 us").first.wait_for()
    assert details.get_by_role("heading", name="step").count() >= 1
    details.get_by_text("payload_int").wait_for()
    visit.until("() => /[#&]e=0\\.nvtx_ranges\\.0\\./.test(location.hash)")


def test_a_launch_leads_to_its_kernel_and_back(visit: Visit) -> None:
    visit.page.mouse.click(*visit.point("CUDA API", STEP + 30 * TICK))
    details = visit.page.get_by_role("complementary", name=re.compile("details", re.IGNORECASE))
    details.get_by_role("button", name=re.compile("gemm_forward")).first.click()
    visit.until("() => /[#&]e=0\\.kernels\\./.test(location.hash)")
    visit.settled()
    details.get_by_role("button", name=re.compile("cudaLaunchKernel")).first.click()
    visit.until("() => /[#&]e=0\\.cuda_api\\./.test(location.hash)")


def test_all_events_of_a_name_are_summed_up(visit: Visit) -> None:
    visit.page.mouse.click(*visit.point("NVTX", INSIDE, lane=1))
    details = visit.page.get_by_role("complementary", name=re.compile("details", re.IGNORECASE))
    details.get_by_text("load", exact=True).first.wait_for()
    details.get_by_role("heading", name="The longest").wait_for()
    assert details.get_by_role("button", name="180 us").count() == STEPS


def test_search_walks_through_the_hits(visit: Visit) -> None:
    visit.page.keyboard.press("/")
    visit.page.keyboard.type("gemm_f")
    visit.page.keyboard.press("Enter")
    visit.until("() => /[#&]e=0\\.kernels\\./.test(location.hash)")
    visit.page.get_by_text("1 of 6", exact=True).wait_for()
    first = visit.page.evaluate("location.hash")
    visit.page.get_by_role("button", name="Next hit").click()
    visit.until("(before) => /[#&]e=0\\.kernels\\./.exec(location.hash) && location.hash !== before", first)
    visit.page.get_by_text("2 of 6", exact=True).wait_for()


def test_search_is_walked_by_keys_alone_and_the_zoom_stays(visit: Visit) -> None:
    page = visit.page
    page.keyboard.press("/")
    page.keyboard.type("forward")
    page.keyboard.press("Enter")
    page.get_by_text(re.compile("^1 of ")).wait_for()
    page.keyboard.press("Escape")  # the hits stay, the keys are those of the timeline again
    visit.until("() => document.activeElement?.id !== 'search'")
    before = visit.view()
    page.keyboard.press("n")
    page.get_by_text(re.compile("^2 of ")).wait_for()
    page.keyboard.press("p")
    page.get_by_text(re.compile("^1 of ")).wait_for()
    after = visit.view()
    assert after[1] - after[0] == pytest.approx(before[1] - before[0], rel=0.01)
    assert page.get_by_role("searchbox", name="Search names").input_value() == "forward"
    page.keyboard.press("Escape")  # what is selected, then the search
    page.keyboard.press("Escape")
    visit.until("() => document.getElementById('search').value === ''")


def test_dragging_marks_a_time_and_sums_up_what_ran(visit: Visit) -> None:
    x, y = visit.point("loader", STEP)
    to, _ = visit.point("loader", 3 * STEP)
    visit.page.mouse.move(x, y + 3)
    visit.page.mouse.down()
    visit.page.mouse.move((x + to) / 2, y + 3)
    visit.page.mouse.move(to, y + 3)
    visit.page.mouse.up()
    visit.until("() => /[#&]r=/.test(location.hash)")
    visit.page.get_by_role("tab", name="Selection").click()
    visit.page.get_by_role("tabpanel").get_by_text("gemm_backward").first.wait_for()


def test_reloading_keeps_the_view(visit: Visit) -> None:
    before = visit.view()
    visit.page.keyboard.press("w")
    near = visit.moved(before)
    visit.page.mouse.click(*visit.point("NVTX", 2 * STEP + INSIDE))
    visit.until("() => /[#&]e=/.test(location.hash)")
    visit.page.get_by_role("tab", name="Stats").click()
    visit.until("() => /[#&]p=stats/.test(location.hash)")
    visit.page.reload()
    visit.settled()
    assert visit.view() == near
    assert visit.page.get_by_role("tab", name="Stats").get_attribute("aria-selected") == "true"
    details = visit.page.get_by_role("complementary", name=re.compile("details", re.IGNORECASE))
    details.get_by_role("heading", name="step").first.wait_for()


def test_back_leads_to_where_one_was(visit: Visit) -> None:
    whole = visit.view()
    visit.double_click(*visit.point("NVTX", 2 * STEP + 3 * TICK, lane=1))
    near = visit.moved(whole)
    assert near[1] - near[0] < (whole[1] - whole[0]) / 3
    visit.page.go_back()
    assert visit.moved(near) == whole


def test_rows_are_closed_pinned_hidden_and_filtered(visit: Visit) -> None:
    page = visit.page
    rows = page.get_by_role("tree", name="Tracks").get_by_role("treeitem")
    many = rows.count()
    visit.row("main").get_by_role("button", include_hidden=True).first.click()
    visit.until(
        "(many) => document.querySelectorAll('[role=tree][aria-label=Tracks] [role=treeitem]').length < many",
        many,
    )
    visit.row("main").get_by_role("button", include_hidden=True).first.click()
    visit.until(
        "(many) => document.querySelectorAll('[role=tree][aria-label=Tracks] [role=treeitem]').length === many",
        many,
    )
    visit.row("Stream 7").focus()
    page.keyboard.press("p")
    page.get_by_role("tree", name="Pinned tracks").get_by_role(
        "treeitem", name=re.compile("^Stream 7")
    ).wait_for()
    page.get_by_role("searchbox", name=re.compile("Filter tracks")).fill("API")
    visit.until(
        "(many) => document.querySelectorAll('[role=tree][aria-label=Tracks] [role=treeitem]').length < many",
        many,
    )
    visit.settled()
    assert visit.row("CUDA API").count() == 1
    assert (
        page.get_by_role("tree", name="Tracks").get_by_role("treeitem", name=re.compile("^GC")).count() == 0
    )


def test_all_controls_can_be_reached_by_keys(visit: Visit) -> None:
    page = visit.page
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement?.getAttribute('role') === 'treeitem'"):
            break
    else:
        pytest.fail("no number of Tabs leads to the tracks")
    for _ in range(40):
        if page.evaluate(
            "(window.before = document.activeElement).getAttribute('aria-label')?.startsWith('NVTX')"
        ):
            break
        page.keyboard.press("ArrowDown")
        visit.until(
            "() => document.activeElement !== window.before"
        )  # the focus follows when the page has drawn its rows
    page.keyboard.press("ArrowRight")
    visit.until(
        "() => document.activeElement?.getAttribute('role') === 'listbox' && document.querySelector('#tl-event-0') !== null"
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    visit.until("() => /[#&]e=0\\.nvtx_ranges\\./.test(location.hash)")
    before = visit.view()
    page.keyboard.press("f")
    assert visit.moved(before) != before
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_names_stay_beside_their_rows_whatever_the_browser_scrolls_to(visit: Visit) -> None:
    """It scrolls to what has the focus or was found in its own search: rows that did not go along would have names of others."""
    page = visit.page
    aside = (
        "() => [...document.querySelectorAll('.tl-zone, .tl-headers')].every((one) => one.scrollTop === 0)"
    )
    scrolled = "() => document.querySelector('.tl-scrollbar').scrollTop > 0"
    page.evaluate("[...document.querySelectorAll('[role=treeitem]')].at(-1).scrollIntoView()")
    visit.until(scrolled)
    visit.until(aside)
    page.evaluate("document.querySelector('.tl-scrollbar').scrollTop = 0")
    visit.until(f"() => !({scrolled})()")
    visit.row("NVTX").click()
    page.keyboard.press("g")  # the row with the focus moves far down
    visit.until("() => /[#&]g=device/.test(location.hash)")
    for _ in range(6):
        page.evaluate("window.before = document.activeElement")
        page.keyboard.press("ArrowDown")
        visit.until("() => document.activeElement !== window.before")
        visit.settled()
        visit.until(aside)
        # Whoever walks sees where they are.
        visit.until(
            """() => {
                const [row, zone] = [document.activeElement, document.querySelector('.tl-body')].map((one) => one.getBoundingClientRect());
                return row.top >= zone.top && row.top < zone.bottom;
            }"""
        )


def test_marks_are_set_and_kept_in_the_address(visit: Visit) -> None:
    visit.page.mouse.move(*visit.point("loader", 2 * STEP))
    visit.page.keyboard.press("m")
    visit.until("() => /[#&]m=/.test(location.hash)")


def test_an_address_without_the_token_is_refused(browser: Browser, server: Server) -> None:
    page = browser.new_context().new_page()
    answer = page.goto(server.url.partition("?")[0])
    assert answer is not None
    assert answer.status == 401
    page.context.close()
