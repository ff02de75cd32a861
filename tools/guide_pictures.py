"""Draws screenshots of the page for README.md and the guides: `guide_pictures.py [--out FOLDER] [RECORDINGS]`.

It records the examples, and opens them and a golden recording of a GPU in a real browser. It needs a C++
compiler, Chromium, and a machine that does little else. RECORDINGS may be a folder that has train.warplens,
before.warplens, after.warplens and flame.warplens already. Look at the pictures before you commit them.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tarfile
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
from warplens.convert.finish import finish  # noqa: E402
from warplens.report import open as open_report  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES = ROOT / "docs" / "images"
SIZE = (1180, 560)
STEPS = slice(24, 30)  # of the demo's 120, in the picture of the README
LONG_GAP = 5_000_000  # ns
TILES = 4  # of the first picture; the other shows as long a time
_LARGEST = 150_000  # bytes
_LOADS = """SELECT start, "end" FROM nvtx_ranges WHERE message = 'load' ORDER BY start"""
GAP = "slow_loader"  # of tests/golden/gpu
_WORK = """SELECT start, "end" FROM kernels UNION ALL SELECT start, "end" FROM memcpys ORDER BY start"""
_SAMPLES = """SELECT start, "end" FROM samples ORDER BY start"""
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


def record(
    folder: Path, name: str, query: str, example: str, *words: str, options: Sequence[str] = ()
) -> Recording:
    """Record the example, unless it is there."""
    path = folder / f"{name}.warplens"
    if not path.exists():
        program = [sys.executable, str(ROOT / "examples" / example), *words]
        subprocess.run(
            [*COMMAND, "profile", "--light", *options, "-q", "-o", str(path), "--", *program],
            env=environment(),
            check=True,
        )
    return _opened(path, query)


def golden(folder: Path, name: str, query: str) -> Recording:
    """Make a report of a recording in tests/golden/gpu."""
    path = folder / f"{name}.warplens"
    with tarfile.open(ROOT / "tests" / "golden" / "gpu" / f"{name}.tar.xz") as packed:
        packed.extractall(folder / name, filter="data")
    finish(folder / name / "spool", path)
    return _opened(path, query)


def _opened(path: Path, query: str) -> Recording:
    with open_report(path) as report:
        rows = report.sql(query).to_pylist()
        return Recording(path, [(row["start"] - report.origin, row["end"] - report.origin) for row in rows])


@contextmanager
def shown(
    browser: Browser, recording: Recording, begin: int, end: int, panel: str = "findings"
) -> Iterator[Visit]:
    """Open the page on a time of a report, with one of its panels."""
    with (
        served(recording.path, cwd=recording.path.parent) as server,
        visiting(browser, server.url, size=SIZE) as visit,
    ):
        address = f"t={begin},{end}"
        visit.page.evaluate("(text) => { location.hash = text; }", f"{address}&p={panel}")
        visit.until("(text) => location.hash.includes(text)", address)
        visit.settled()
        yield visit


def screenshot(visit: Visit) -> bytes:
    """Return a screenshot with every panel loaded: on a busy machine, answers come late."""
    visit.settled()
    visit.until("() => !document.body.innerText.includes('Loading ')")
    png: bytes = visit.page.screenshot()
    return png


def picture(visit: Visit, row: str, chosen: float, lane: int = 0) -> bytes:
    """Select what lies at `chosen` in a row, and return a screenshot."""
    visit.page.mouse.click(*visit.point(row, chosen, lane))
    visit.until("() => /[#&]e=0\\.\\w+\\./.test(location.hash)")
    visit.page.mouse.move(SIZE[0] / 2, SIZE[1] - 8)
    return screenshot(visit)


def draw_page(browser: Browser, recording: Recording) -> bytes:
    """Show some steps of the demo, with the longest wait for data among them selected."""
    loads = recording.tiles[STEPS]
    with shown(browser, recording, loads[0][0] - 10_000_000, loads[-1][1] + 10_000_000) as visit:
        longest = max(loads, key=lambda load: load[1] - load[0])
        return picture(visit, "NVTX", sum(longest) / 2, lane=2)


def draw_gap(browser: Browser, recording: Recording) -> bytes:
    """Show the gap of median length among the long ones of a GPU, with the work on both sides."""
    gaps = [
        (before[1], after[0])
        for before, after in zip(recording.tiles, recording.tiles[1:], strict=False)
        if after[0] - before[1] > LONG_GAP
    ]
    begin, end = sorted(gaps, key=lambda gap: gap[1] - gap[0])[len(gaps) // 2]
    margin = (end - begin) // 4
    with shown(browser, recording, begin - margin, end + margin, panel="-") as visit:
        visit.page.get_by_label("Group").select_option("device")
        return screenshot(visit)


def draw_flame(browser: Browser, recording: Recording) -> bytes:
    """Show the flame graph of the samples of a whole recording."""
    begin, end = recording.tiles[0][0], max(last for _, last in recording.tiles)
    with shown(browser, recording, begin, end, panel="flame") as visit:
        visit.page.locator(".p-bar").get_by_text("CPU samples").click()
        visit.page.locator(".p-flame").first.wait_for()
        return screenshot(visit)


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
    """Draw all pictures; return 1 if one is too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=IMAGES, metavar="FOLDER")
    parser.add_argument("recordings", nargs="?", type=Path, metavar="RECORDINGS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, started("chromium") as browser:
        folder = options.recordings or Path(place)
        inside = ("intrakernel_pipeline/pipeline.py", "--cpu")
        before, after = (
            record(folder, "before", _COMPUTES, *inside),
            record(folder, "after", _COMPUTES, *inside, "--stages", "3"),
        )
        pictures = {"page": draw_page(browser, record(folder, "train", _LOADS, "train.py"))}
        pictures["idle-gap"] = draw_gap(browser, golden(Path(place), GAP, _WORK))
        sampled = ("--sample=process-tree", "-t", "nvtx,gc")
        pictures["flame"] = draw_flame(
            browser, record(folder, "flame", _SAMPLES, "cpu_mistakes/gc_pause.py", options=sampled)
        )
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
            path = options.out / f"{name}.png"
            path.write_bytes(reduced(png))
            print(f"{path}: {path.stat().st_size:,} bytes")
            large |= path.stat().st_size > _LARGEST
    return int(large)


if __name__ == "__main__":
    sys.exit(main())
