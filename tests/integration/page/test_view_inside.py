"""Rows inside kernels in a real browser: folded at first, opened below their kernel, with details that lead back to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.page.browsing import Server, served, visiting
from warplens.testing.kernel_insides import DrawnLaunch, launch_tables, pipeline
from warplens.testing.timeline import timeline

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.require("page"), pytest.mark.every_browser]
PICTURE = """
    main      |[step                                                        ]
    main:api  |  (cudaLaunchKernel#1 )(cudaLaunchKernel#2)
    gpu0.7    |            (gemm#1                    )      (gemm#2      )
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("inside")
    launches = [
        DrawnLaunch(
            "gemm", begin, end, list(pipeline(begin + 500, end - 500, blocks=12)), kernel=row, api=row
        )
        for row, (begin, end) in enumerate(((12_000, 40_000), (46_000, 60_000)))
    ]
    timeline(
        folder / "run.warplens", PICTURE, cuda={"gpu0": {"name": "H100"}}, tables=launch_tables(launches)
    )
    with served(folder / "run.warplens", cwd=folder) as started:
        yield started


def test_rows_inside_a_kernel_open_and_lead_back_to_it(browser: Browser, server: Server) -> None:
    with visiting(browser, server.url, size=(1280, 1000)) as visit:
        assert visit.row("Inside gemm").count() == 1
        assert visit.row("SM 0").count() == 0
        visit.row("Inside gemm").click()
        visit.page.keyboard.press("ArrowRight")
        visit.row("Warp 1").wait_for()
        for name in ("SM 0", "Warp 0", "Marks"):
            assert visit.row(name).count() == 1, name
        visit.settled()
        visit.page.mouse.click(*visit.point("Warp 1", 20_200, 1))
        visit.until("() => /[#&]e=0\\.intrakernel_events\\./.test(location.hash)")
        details = visit.page.get_by_role("complementary").filter(has_text="compute")
        details.get_by_text("uncertainty").wait_for()
        assert details.get_by_text("gemm").count() > 0
        visit.page.mouse.click(*visit.point("Inside gemm", 20_000))
        visit.until("() => /[#&]e=0\\.intrakernel_launches\\./.test(location.hash)")
        visit.settled()


def test_search_finds_regions_in_folded_rows(browser: Browser, server: Server) -> None:
    with visiting(browser, server.url) as visit:
        visit.page.keyboard.press("/")
        visit.page.keyboard.type("compute")
        visit.page.keyboard.press("Enter")
        visit.until("() => /[#&]s=/.test(location.hash)")
        visit.page.get_by_text("96 hits").first.wait_for()
        visit.row("Warp 1").wait_for()
        visit.settled()
