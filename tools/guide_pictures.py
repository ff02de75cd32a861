"""Draw the pictures of the page in README.md and docs/guide/intrakernel.md anew: record their examples, open them in a real browser.

`python tools/guide_pictures.py [FOLDER]`; wants a C++ compiler, Chromium, and a machine that does little else, or a folder with
train.warplens, before.warplens and after.warplens, where there are good recordings already. Look at what it drew.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.page.browsing import Visit, served, started, visiting  # noqa: E402
from tests.support.page.pictures import pixels  # noqa: E402
from tests.support.programs.launching import COMMAND, environment  # noqa: E402
from warplens.report import open as open_report  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = ROOT / "docs" / "images"
SIZE = (1180, 560)
STEPS = slice(24, 30)  # of the demo's 120, in the picture of the README
TILES = 4  # of the first picture; the other shows as long a time
_LARGEST = 150_000  # bytes
_LOADS = """SELECT start, "end" FROM nvtx_ranges WHERE message = 'load' ORDER BY start"""
_COMPUTES = """
    SELECT e.start, e."end" FROM intrakernel_events e JOIN intrakernel_units u ON u.id = e.unit
    WHERE u.cta = 0 AND u.warp = 1 AND e.tag = 'compute' ORDER BY e.start"""


@dataclass(frozen=True)
class Recording:
    """A report, and when each of its tiles was computed in the first block (or each batch was loaded), ns from the begin."""

    path: Path
    tiles: Sequence[tuple[int, int]]

    def steadiest(self, count: int) -> int:
        """Return where `count` tiles follow each other the fastest, without the first and the last."""
        places = range(4, len(self.tiles) - count - 4)
        return min(places, key=lambda at: self.tiles[at + count - 1][1] - self.tiles[at][0])


def record(folder: Path, name: str, query: str, example: str, *words: str) -> Recording:
    """Record the example, unless it is there."""
    path = folder / f"{name}.warplens"
    if not path.exists():
        program = [sys.executable, str(ROOT / "examples" / example), *words]
        subprocess.run(
            [*COMMAND, "profile", "--light", "-q", "-o", str(path), "--", *program],
            env=environment(),
            check=True,
        )
    with open_report(path) as report:
        rows = report.sql(query).to_pylist()
        return Recording(path, [(row["start"] - report.origin, row["end"] - report.origin) for row in rows])


@contextmanager
def shown(browser: Browser, recording: Recording, begin: int, end: int) -> Iterator[Visit]:
    """Open the page on a time of a report, with its findings."""
    with (
        served(recording.path, cwd=recording.path.parent) as server,
        visiting(browser, server.url, size=SIZE) as visit,
    ):
        address = f"t={begin},{end}"
        visit.page.evaluate("(text) => { location.hash = text; }", f"{address}&p=findings")
        visit.until("(text) => location.hash.includes(text)", address)
        visit.settled()
        yield visit


def picture(visit: Visit, row: str, chosen: float, lane: int = 0) -> bytes:
    """Select what lies at `chosen` in a row, and return a screenshot."""
    visit.page.mouse.click(*visit.point(row, chosen, lane))
    visit.until("() => /[#&]e=0\\.\\w+\\./.test(location.hash)")
    visit.page.mouse.move(SIZE[0] / 2, SIZE[1] - 8)
    visit.settled()
    png: bytes = visit.page.screenshot()
    return png


def draw_page(browser: Browser, recording: Recording) -> bytes:
    """Show some steps of the demo, with the longest wait for data among them selected."""
    loads = recording.tiles[STEPS]
    with shown(browser, recording, loads[0][0] - 10_000_000, loads[-1][1] + 10_000_000) as visit:
        longest = max(loads, key=lambda load: load[1] - load[0])
        return picture(visit, "NVTX", sum(longest) / 2, lane=2)


def draw_inside(browser: Browser, recording: Recording, begin: int, end: int, chosen: int) -> bytes:
    """Show a time of a report with its rows inside the kernel open, and the region at `chosen` in warp 1 selected."""
    with shown(browser, recording, begin, end) as visit:
        visit.row("Inside pipeline").click()
        visit.page.keyboard.press("ArrowRight")
        visit.row("Warp 2").wait_for()
        return picture(visit, "Warp 1", chosen)


def reduced(png: bytes) -> bytes:
    """Return a PNG with the 256 colours that are most of a picture, each pixel with the nearest of them."""
    width, height, rows = pixels(png)
    colours = np.frombuffer(rows, np.uint8).reshape(-1, 3).astype(np.int64)
    own, which, count = np.unique(colours @ (65536, 256, 1), return_inverse=True, return_counts=True)
    every = np.stack([own >> 16, own >> 8 & 255, own & 255], axis=1)
    palette = every[np.argsort(-count, kind="stable")[:256]]
    nearest = np.concatenate(
        [
            np.argmin(((part[:, None] - palette) ** 2).sum(axis=2), axis=1)
            for part in np.array_split(every, 64)
        ]
    )
    lines = np.zeros((height, width + 1), np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = nearest[which.reshape(height, width)]
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": palette.astype(np.uint8).tobytes(),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, parts.items()))


def _chunk(part: tuple[bytes, bytes]) -> bytes:
    kind, content = part
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def main() -> int:
    """Draw all; 1 where one is too large."""
    with tempfile.TemporaryDirectory() as place, started("chromium") as browser:
        folder = Path(*sys.argv[1:2] or [place])
        inside = ("intrakernel_pipeline/pipeline.py", "--cpu")
        before, after = (
            record(folder, "before", _COMPUTES, *inside),
            record(folder, "after", _COMPUTES, *inside, "--stages", "3"),
        )
        pictures = {"page": draw_page(browser, record(folder, "train", _LOADS, "train.py"))}
        first = before.steadiest(TILES)
        begin, end = before.tiles[first][0], before.tiles[first + TILES - 1][1]
        margin = (end - begin) // 20
        waits = (before.tiles[first + 1][1] + before.tiles[first + 2][0]) // 2
        pictures["intrakernel-before"] = draw_inside(browser, before, begin - margin, end + margin, waits)
        first = after.steadiest(2 * TILES)
        begin, length = after.tiles[first][0], end - begin
        computes = sum(after.tiles[first + TILES - 1]) // 2
        pictures["intrakernel-after"] = draw_inside(
            browser, after, begin - margin, begin + length + margin, computes
        )
        large = False
        for name, png in pictures.items():
            path = IMAGES / f"{name}.png"
            path.write_bytes(reduced(png))
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
            large |= path.stat().st_size > _LARGEST
    return int(large)


if __name__ == "__main__":
    sys.exit(main())
