"""Recordings of real GPUs, made by other tools, in the page: each opens, draws, and complains of nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.page.browsing import served, visiting
from tests.support.programs.launching import environment
from tests.support.thorough import few

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data"
_LACKING = pytest.mark.skip(reason=f"the recordings of real GPUs are not here ({FOLDER})")
FILES: list[Any] = [
    path.relative_to(FOLDER).as_posix()
    for path in (
        *sorted(FOLDER.glob("nsys/*.sqlite")),
        *sorted(FOLDER.glob("kineto/*.json.gz")),
        *FOLDER.glob("kineto/dlrm_8ranks"),
    )
] or [pytest.param("real ones", marks=_LACKING)]
pytestmark = pytest.mark.require("page")


@pytest.mark.parametrize("name", few(FILES))
def test_a_real_recording_is_drawn_and_zoomed(browser: Browser, tmp_path: Path, name: str) -> None:
    env = environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    with served(FOLDER / name, cwd=tmp_path, env=env) as server, visiting(browser, server.url) as visit:
        visit.until("() => performance.getEntriesByName('warplens:first').length === 1")
        assert visit.page.get_by_role("treeitem").count() > 3
        whole = visit.view()
        canvas = visit.page.locator(".tl-body").bounding_box()
        assert canvas is not None
        visit.page.mouse.move(canvas["x"] + canvas["width"] / 2, canvas["y"] + canvas["height"] / 2)
        seen = whole
        for _ in range(3):
            visit.page.keyboard.press("w")
            seen = visit.moved(seen)
        assert seen[1] - seen[0] < whole[1] - whole[0]
        for tab in ("Stats", "Steps", "Flame", "Memory", "Diagnostics", "Findings"):
            visit.page.get_by_role("tab", name=tab, exact=True).click()
            visit.until(
                "() => document.querySelector('[role=tabpanel] [aria-busy=true], [role=tabpanel] .p-wait') === null"
            )
