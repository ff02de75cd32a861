"""Times `warplens view` in a real browser on 200 tracks (50 visible), beside the Perfetto UI if it loads them.

Chromium without a window draws on the CPU. First pixels are those of data, counted from the navigation; a frame is all that the page's
main thread does for one, from its script to the painted canvas that it hands over, as Chromium's trace has it; a refinement lasts from the
wish for finer data to the end of the script that draws them. The server's memory is its peak, with the pages of the mapped index that it
touched.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import _perfetto_ui
from _timeline_reports import TRACKS, make_apart
from harness import Row
from tests.support.page import browsing
from tests.support.page.browsing import Visit, served, started, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NEEDS = "browser"
SIZES = (1_000_000, 10_000_000, 50_000_000, 100_000_000)
PERFETTO = 10_000_000  # what its page still holds
FIRST_S, FRAME_MS, REFINE_MS, MEMORY_GB = 0.5, 16.0, 50.0, 1.0
RECTANGLES = 8_000
WINDOW = (1600, 1100)  # 50 tracks high
VISITS, MOVES, JUMPS, DEEP = 7, 80, 60, 14
UNSEEN_S = 2.0
FRAME, SCRIPT_US = (
    "ProxyMain::BeginMainFrame",
    1_000,
)  # Chromium's name for it; a script that drew takes so long
_PATIENCE = 1_200_000  # ms
_UI = "Perfetto UI"
_EMPTY = "empty page"
# What a browser needs at least: a page, its script, a canvas with a text and a box on it.
_PAGE = (
    b'<!doctype html><meta charset="utf-8"><style>body{font:12px system-ui,sans-serif}</style><p>0 events</p><canvas></canvas>'
    b"<script type=module src=s.js></script>"
)
_SCRIPT = b"""const c = document.querySelector("canvas"); c.width = innerWidth; c.height = innerHeight - 100;
requestAnimationFrame(() => { const d = c.getContext("2d"); d.font = "11px system-ui, sans-serif";
  d.fillText("0 ms", 9, 20); d.fillRect(20, 30, 500, 16); performance.mark("first"); });"""


def run(quick: bool) -> Iterator[Row]:
    """Measure each size in turn; the Perfetto UI beside the smaller ones, in the same run."""
    browsing.PATIENCE = _PATIENCE  # the first view makes the index
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        for size in SIZES[:1] if quick else SIZES:
            path = Path(directory) / f"{size}.warplens"
            events = make_apart(path, size)
            ours = _ours(path)
            theirs = _theirs(path) if size <= PERFETTO else {}
            yield from _rows(events, ours, theirs, promised=not quick)
            subprocess.run(["rm", "-rf", str(path)], check=True)


def _rows(events: int, ours: dict[str, float], theirs: dict[str, float], *, promised: bool) -> list[Row]:
    what = f"{events / 1e6:.3g}·10⁶ events, {TRACKS} tracks"

    def row(name: str, key: str, unit: str, budget: float | None, note: str = "") -> Row:
        peer = {"peer": _UI, "peer_value": theirs[key]} if key in theirs else {}
        return Row(
            f"{what}: {name}",
            ours[key],
            unit,
            **peer,  # type: ignore[arg-type]
            budget=budget if promised else None,
            budget_on="value",
            note=note,
        )

    return [
        row("first view, its index made", "index", "s", None),
        row(
            "navigation → first pixels",
            "first",
            "s",
            FIRST_S,
            f"{_EMPTY}, one canvas, in the same browser: {ours['empty']:.2f} s",
        ),
        row(
            "frame of panning and zooming, p95",
            "frame",
            "ms",
            FRAME_MS,
            f"{ours['rectangles']:,.0f} rectangles drawn, p95; its script {ours['script']:.1f} ms",
        ),
        row(
            "from frame to frame meanwhile, p95",
            "between",
            "ms",
            None,
            "16.7 ms is every frame of the screen",
        ),
        row(
            "moves that had to wait for finer data",
            "waited",
            "%",
            None,
            f"{ours['longest']:.0f} ms the longest, the rest was there",
        ),
        row(
            "refine after a jump, p95",
            "refine",
            "ms",
            REFINE_MS,
            f"{JUMPS} jumps to where nothing was asked for ahead",
        ),
        row("memory of the server", "memory", "GB", MEMORY_GB),
        row("memory of the page", "page", "GB", None),
    ]


def _ours(path: Path) -> dict[str, float]:
    with started("chromium") as browser:
        before = time.perf_counter()
        with served(path, cwd=path.parent) as server, visiting(browser, server.url, size=WINDOW) as visit:
            found = {"index": time.perf_counter() - before}
        with served(path, cwd=path.parent) as server:
            with visiting(
                browser, server.url, size=WINDOW
            ) as visit:  # what is computed once for all visits: findings, NVTX on the GPU
                visit.until("() => /^[0-9]+ finding/.test(document.getElementById('panel').textContent)")
            found["first"] = _firsts(browser, server.url, "warplens:first")
            found["empty"] = _empty(browser)
            with visiting(browser, server.url, size=WINDOW) as visit:
                found |= _moved(visit) | _jumped(visit)
                found["page"] = _memory_of_pages()
            found["memory"] = _peak(server.pid)
        return found


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body, kind = (_SCRIPT, "text/javascript") if self.path == "/s.js" else (_PAGE, "text/html")
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def _empty(browser: Browser) -> float:
    """Return from when to when the smallest page takes, in seconds: what no page can be faster than."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return _firsts(browser, f"http://127.0.0.1:{server.server_port}/", "first")
    finally:
        server.shutdown()


def _firsts(browser: Browser, url: str, mark: str) -> float:
    return statistics.median(_first(browser, url, mark) for _ in range(VISITS)) / 1e3


def _first(browser: Browser, url: str, mark: str) -> float:
    """Return when a page set a mark, ms after its navigation began. Nobody looks into the page before: that alone runs scripts in it."""
    context = browser.new_context(viewport={"width": WINDOW[0], "height": WINDOW[1]})
    try:
        page = context.new_page()
        page.goto(url, wait_until="commit", timeout=_PATIENCE)
        time.sleep(UNSEEN_S)
        page.wait_for_function(
            "(mark) => performance.getEntriesByName(mark).length > 0", arg=mark, timeout=_PATIENCE
        )
        found: float = page.evaluate("(mark) => performance.getEntriesByName(mark)[0].startTime", mark)
        return found
    finally:
        context.close()


def _moved(visit: Visit) -> dict[str, float]:
    """Pan and zoom as hands do, to places all over the report, and return what frames and refinements took."""
    page, rng = visit.page, random.Random(5)
    page.evaluate("() => performance.clearMeasures()")
    between: list[float] = []
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["cc", "devtools.timeline"])
    for _ in range(MOVES):
        page.mouse.move(rng.randint(400, WINDOW[0] - 100), rng.randint(200, WINDOW[1] - 500))
        between += _held(page, rng.choice("wwwwsad"), rng.uniform(100, 400))
        visit.settled()
        if rng.random() < 0.1:
            page.keyboard.press("f") if rng.random() < 0.5 else page.keyboard.press("Home")
            visit.settled()
    whole = _frames(browser.stop_tracing())
    frames = page.evaluate(
        "() => performance.getEntriesByName('warplens:frame').map((one) => [one.duration, one.detail.rectangles])"
    )
    refines = _refines(page)
    return {
        "frame": _p95(whole),
        "script": _p95([duration for duration, _ in frames]),
        "rectangles": _p95([rectangles for _, rectangles in frames]),
        "waited": 100 * len(refines) / MOVES,
        "longest": max(refines, default=0.0),
        "between": _p95(between),
    }


def _frames(trace: bytes) -> list[float]:
    """Return the ms of all frames of a page that ran a script of ours, from a trace of Chromium."""
    events = [one for one in json.loads(trace)["traceEvents"] if one.get("ph") == "X"]
    painted = [
        (one["pid"], one["ts"])
        for one in events
        if one["name"] == "FunctionCall" and one.get("dur", 0) > SCRIPT_US
    ]
    frames = [one for one in events if one["name"] == FRAME]
    return [
        one["dur"] / 1e3
        for one in frames
        if any(pid == one["pid"] and 0 <= at - one["ts"] < one["dur"] for pid, at in painted)
    ]


def _jumped(visit: Visit) -> dict[str, float]:
    """Click on the minimap, far from what is seen, and return what it took until the picture there was fine."""
    page, rng = visit.page, random.Random(6)
    page.keyboard.press("Home")
    page.mouse.move(WINDOW[0] // 2, WINDOW[1] // 2)
    for _ in range(DEEP):
        page.keyboard.press("w")
    visit.settled()
    box = page.locator(".tl-minimap").bounding_box()
    assert box is not None
    page.evaluate("() => performance.clearMeasures()")
    for _ in range(JUMPS):
        page.mouse.click(box["x"] + rng.uniform(0.05, 0.95) * box["width"], box["y"] + box["height"] / 2)
        visit.settled()
    return {"refine": _p95(_refines(page))}


def _refines(page: Page) -> list[float]:
    found: list[float] = page.evaluate(
        "() => performance.getEntriesByName('warplens:refine').map((one) => one.duration)"
    )
    return found


def _held(page: Page, key: str, milliseconds: float) -> list[float]:
    """Hold a key and return the ms between the frames of the screen meanwhile."""
    page.evaluate(
        """() => {
          const times = (window.__times = []);
          window.__going = true;
          const next = (now) => { times.push(now); if (window.__going) requestAnimationFrame(next); };
          requestAnimationFrame(next);
        }"""
    )
    page.keyboard.down(key)
    page.wait_for_timeout(milliseconds)
    page.keyboard.up(key)
    times: list[float] = page.evaluate("() => { window.__going = false; return window.__times; }")
    return [after - before for before, after in pairwise(times)]


def _theirs(path: Path) -> dict[str, float]:
    """Do the same in the Perfetto UI, with what `warplens export` writes; nothing where there is no UI, or it cannot load that."""
    dist = _perfetto_ui.folder()
    if dist is None:
        return {}
    trace = path.with_suffix(".pftrace")
    subprocess.run(
        [sys.executable, "-m", "warplens", "export", "-q", "-o", str(trace), str(path)], check=True
    )
    try:
        with started("chromium") as browser, _perfetto_ui.perfetto_ui(dist, trace) as url:
            return _perfetto(browser, url)
    finally:
        trace.unlink()


def _perfetto(browser: Browser, url: str) -> dict[str, float]:
    context = browser.new_context(viewport={"width": WINDOW[0], "height": WINDOW[1]}, service_workers="block")
    try:
        page = context.new_page()
        before = time.perf_counter()
        page.goto(url)
        page.wait_for_selector("canvas", timeout=_PATIENCE)
        page.evaluate(
            "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )
        found = {"first": time.perf_counter() - before}
        rng = random.Random(5)
        page.mouse.move(WINDOW[0] // 2, WINDOW[1] // 2)
        between = [
            one for _ in range(MOVES) for one in _held(page, rng.choice("wwwwsad"), rng.uniform(100, 400))
        ]
        return {**found, "between": _p95(between), "page": _memory_of_pages()}
    finally:
        context.close()


def _p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else float(values[0])


def _peak(pid: int) -> float:
    return _status(pid, "VmHWM")


def _status(pid: int, line: str) -> float:
    """Return a line of a process's status, GB."""
    for text in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if text.startswith(f"{line}:"):
            return int(text.split()[1]) * 1024 / 1e9
    return 0.0


def _memory_of_pages() -> float:
    """Return the peak of the largest of our browser's processes that draw pages, GB."""
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int(
                    (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
                )
                words[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue

    def is_ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return max(
        (_status(pid, "VmHWM") for pid, text in words.items() if "--type=renderer" in text and is_ours(pid)),
        default=0.0,
    )
