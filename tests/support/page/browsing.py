"""The page of `warplens view` in a real browser: every wait is for a condition, with a minute as its ceiling, none is for a time.

Playwright drives the browsers that the system has, and downloads none. Its own protocol needs a patched Firefox; the channel
"moz-firefox" drives the released one over WebDriver BiDi. Selenium would need geckodriver, which Debian does not package.
Playwright 1.61 and later send `emulation.setMediaFeaturesOverride` to each new window, which Firefox ESR does not know yet.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.support.programs.launching import COMMAND, environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType, ConsoleMessage, Locator, Page

PATIENCE = 60_000  # ms
PROGRAMS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
}
SIZE = (1280, 720)
_URL = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):\d+/\S*")
# Canvas text is the same on every machine that has the same fonts, and smooth edges are where they differ.
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--hide-scrollbars",
]
# Over BiDi, Playwright does not set what a window prefers, and adds the style "body {}" for a screenshot, which our policy blocks.
_SCREENSHOT = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA="
_REDUCED_MOTION, _COLOR_SCHEME = "ui.prefersReducedMotion", "layout.css.prefers-color-scheme.content-override"


@dataclass(frozen=True)
class Server:
    """A server that runs: its address with the token, its process, and the lines that it printed."""

    url: str
    pid: int
    said: list[str]


@contextmanager
def served(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> Iterator[Server]:
    """Run `warplens view --no-browser WORDS` until it prints its address; AssertionError with what it said if it prints none."""
    command = [*COMMAND, "view", "--no-browser", *map(str, words)]
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env or environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    found = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if _URL.search(line):
                found.set()
        found.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        found.wait(PATIENCE / 1000)
        url = next((match[0] for line in said if (match := _URL.search(line))), None)
        assert url is not None, f"`warplens view` printed no address:\n{''.join(said)}"
        yield Server(url, process.pid, said)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE / 1000)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def started(name: str) -> Iterator[Browser]:
    """Start the system's browser without a window: "chromium" or "firefox"."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = _launch(playwright.firefox if name == "firefox" else playwright.chromium)
        try:
            yield browser
        finally:
            browser.close()


def _launch(kind: BrowserType, *, dark: bool = False) -> Browser:
    program = next(filter(None, map(shutil.which, PROGRAMS[kind.name])))
    if kind.name == "firefox":
        preferences: dict[str, str | float | bool] = {_REDUCED_MOTION: 1, _COLOR_SCHEME: 0 if dark else 1}
        return kind.launch(
            executable_path=program, channel="moz-firefox", firefox_user_prefs=preferences, timeout=PATIENCE
        )
    return kind.launch(executable_path=program, args=_FLAGS, timeout=PATIENCE)


class Visit:
    """A page that is open, and what it must not do: complain, break its own policy, ask anybody but its server."""

    def __init__(self, page: Page, url: str, *, address: bool = True) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        parts = urlsplit(url)
        home = f"{parts.scheme}://{parts.netloc}"
        page.on("console", self._heard)
        page.on(
            "pageerror",
            lambda error: None if _SCREENSHOT in str(error) else self.complaints.append(str(error)),
        )
        page.on(
            "request", lambda request: None if _own(request.url, home) else self.strangers.append(request.url)
        )
        page.set_default_timeout(PATIENCE)
        page.goto(url, timeout=PATIENCE)
        self.settled()
        if address:
            self._written()

    def _heard(self, message: ConsoleMessage) -> None:
        # A browser logs every answer without success, also that a report has no such data, which the page then says in words.
        told = "404" in message.text and "/api/1/" in message.location.get("url", "")
        if message.type in ("error", "warning") and not told:
            self.complaints.append(message.text)

    def _written(self) -> None:
        """Have the page write down in its address what is seen, as it does when something changes."""
        for address in ("p=-", "p=findings"):
            self.page.keyboard.press("b")
            self.until("(text) => location.hash.includes(text)", address)
        self.settled()

    def settled(self) -> None:
        """Wait until the timeline is drawn and no answer for what is seen is still on its way."""
        self.page.wait_for_function(
            "() => document.documentElement.dataset.settled === 'yes'", timeout=PATIENCE
        )

    def until(self, condition: str, argument: Any = None) -> Any:
        """Wait for a JavaScript condition; return what it gave."""
        return self.page.wait_for_function(condition, arg=argument, timeout=PATIENCE).json_value()

    def view(self) -> tuple[float, float]:
        """Begin and end of what is seen, ns, from the address; it is written down when the view rests."""
        self.settled()
        match = re.search(
            r"[#&]t=(-?[\d.]+),(-?[\d.]+)", self.until("() => /[#&]t=/.test(location.hash) && location.hash")
        )
        assert match is not None
        return float(match[1]), float(match[2])

    def moved(self, from_: tuple[float, float]) -> tuple[float, float]:
        """Wait until another time is seen than `from_`, and all of it; return what is."""
        begin, end = from_
        self.until(
            """([begin, end]) => { const found = /[#&]t=(-?[\\d.]+),(-?[\\d.]+)/.exec(location.hash);
            return found !== null && (Number(found[1]) !== begin || Number(found[2]) !== end); }""",
            [begin, end],
        )
        return self.view()

    def row(self, name: str) -> Locator:
        """The name of a row at the left: the first one that begins so."""
        return self.page.get_by_role("treeitem", name=re.compile(f"^{re.escape(name)}\\b")).first

    def point(self, row: str, time: float, lane: int = 0) -> tuple[float, float]:
        """Where a time (ns) is in a row, in pixels of the window: in the middle of its first lane, or `lane` below."""
        begin, end = self.view()
        box, canvas = self.row(row).bounding_box(), self.page.locator(".tl-body").bounding_box()
        assert box is not None
        assert canvas is not None
        return canvas["x"] + (time - begin) / (end - begin) * canvas["width"], box["y"] + 11 + 17 * lane

    def double_click(self, x: float, y: float) -> None:
        """Click twice at a place of the window."""
        self.page.mouse.dblclick(x, y)
        if _is_firefox(self.page.context.browser):
            # Over BiDi, each of Playwright's clicks counts as the first one.
            script = """([x, y]) => document.elementFromPoint(x, y).dispatchEvent(
                new MouseEvent("dblclick", { clientX: x, clientY: y, bubbles: true, detail: 2 }))"""
            self.page.evaluate(script, [x, y])

    def check(self) -> None:
        """Hold the page to what it must not have done."""
        assert not self.strangers, f"the page asked others: {self.strangers}"
        assert not self.complaints, f"the page complained: {self.complaints}"


def _is_firefox(browser: Browser | None) -> bool:
    return browser is not None and browser.browser_type.name == "firefox"


def _own(url: str, home: str) -> bool:
    return url.startswith((f"{home}/", "data:", "blob:"))


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = SIZE,
    dark: bool = False,
    strict: bool = True,
    address: bool = True,
) -> Iterator[Visit]:
    """Open a page in a fresh profile; in the end, hold it to its good behaviour unless `strict` is false.

    `address`: let it write down what is seen.
    """
    with ExitStack() as stack:
        if dark and _is_firefox(browser):
            browser = stack.enter_context(_launch(browser.browser_type, dark=True))
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            device_scale_factor=1,
            locale="en-US",
            timezone_id="UTC",
        )
        visit = Visit(stack.enter_context(context).new_page(), url, address=address)
        yield visit
        if strict:
            visit.check()


Opens = Callable[..., Visit]
