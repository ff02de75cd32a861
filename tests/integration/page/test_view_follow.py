"""`warplens view --follow` in a real browser: what a program records while one looks comes into the page."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.page.browsing import PATIENCE, served, visiting
from tests.support.programs.launching import COMMAND, environment, program

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.require("page"), pytest.mark.require("native"), pytest.mark.every_browser]
_COUNT = "/([\\d,]+) events?/.exec(document.querySelector('.status').innerText)[1].replaceAll(',', '')"
# Each file that appears lets it go one step on.
STEPS = """
import pathlib
folder = pathlib.Path(sys.argv[1])
def until(name):
    while not (folder / name).exists():
        time.sleep(0.05)
with nvtx.annotate("first_part"):
    pass
(folder / "began").touch()
until("go on")
for _ in range(3):
    with nvtx.annotate("second_part"):
        pass
(folder / "went on").touch()
until("end")
"""


@contextmanager
def recording(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Record the program; in the end it is let go."""
    script = program(folder / "train.py", STEPS)
    command = [*COMMAND, "profile", "--light", "-q", "-o", "run.warplens", str(script), str(folder)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        for name in ("go on", "end"):
            (folder / name).touch()
        try:
            process.communicate(timeout=PATIENCE / 1000)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def test_new_events_appear_while_the_program_runs(browser: Browser, tmp_path: Path) -> None:
    with recording(tmp_path) as process:
        _until(tmp_path / "began", process)
        with (
            served("--follow", "run.warplens", cwd=tmp_path) as server,
            visiting(browser, server.url, address=False) as visit,
        ):
            visit.page.locator(".status").get_by_text("live").wait_for()
            before = _events(visit.page.locator(".status").inner_text())
            (tmp_path / "go on").touch()
            _until(tmp_path / "went on", process)
            visit.until(f"(before) => Number({_COUNT}) > before", before)
            visit.page.keyboard.press("/")
            visit.page.keyboard.type("second_part")
            visit.page.keyboard.press("Enter")
            visit.until("() => /[#&]e=0\\.nvtx_ranges\\./.test(location.hash)")
            (tmp_path / "end").touch()
            process.wait(PATIENCE / 1000)
            visit.page.locator(".status").get_by_text("live").wait_for(state="hidden")


def _events(status: str) -> int:
    words = status.replace(",", "").split()
    return int(next(words[place - 1] for place, word in enumerate(words) if word.startswith("event")))


def _until(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait for a file that the program makes, for as long as it runs."""
    import time

    end = time.monotonic() + PATIENCE / 1000
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, f"{path.name} did not appear"
        time.sleep(0.05)
