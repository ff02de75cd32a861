"""The timeline index: time to build it, time of a view from the whole run to a few slices, and memory.

200 threads with three lanes each, 50 of them asked for and then all, 1600 pixels. Building is held against reading the same columns with
pyarrow, a view against summing the starts of all slices with NumPy: what looking at each once would take. What building adds to finishing
a recording is a separate row.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _finishing import measure
from _reports import make_report
from finish import make_spool
from harness import Row
from warplens.report.store import open_store
from warplens.storage import manifest as manifests
from warplens.timeline.index import LaneIndex, building
from warplens.timeline.index.layers import LAYERS
from warplens.timeline.index.rows import LayerReader

THREADS, ASKED, WIDTH, LIMIT = 200, 50, 1600, 8192
ZOOMS = (1, 10, 100, 1_000, 10_000)
BYTES = 36  # of a rectangle, as the server sends it
ROUNDS = 5  # of building what takes a fraction of a second: the machine's other work is as long as it
FINISHED = 4_000_000  # ranges
BUILT_PER_SECOND, VIEW_MS, MEMORY_MIB, ANSWER_MIB = 5e6, 15, 400, 1


def run(quick: bool) -> list[Row]:
    """Measure 10^6 slices, and 5*10^7 and 10^8 unless `quick`; build and views each in a separate process."""
    rows = _finishing()
    for size in (1_000_000,) if quick else (1_000_000, 50_000_000, 100_000_000):
        with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
            report = make_report(Path(folder) / "bench.warplens", size, THREADS)
            builds = [_apart("build", report) for _ in range(ROUNDS if size <= 1_000_000 else 1)]
            built, seen = min(builds, key=lambda one: one["wall"]), _apart("view", report)
        label = f"{size:.0e} slices".replace("e+0", "e")
        rows += [
            Row(
                f"{label}: built per second",
                size / built["wall"],
                "slices/s",
                budget=BUILT_PER_SECOND,
                budget_on="at least",
            ),
            Row(
                f"{label}: CPU to build",
                built["cpu"] / size * 1e9,
                "ns/slice",
                "pyarrow reads the columns",
                built["read"] / size * 1e9,
            ),
            Row(
                f"{label}: peak memory of building", built["rss"], "MiB", budget=MEMORY_MIB, budget_on="value"
            ),
            Row(f"{label}: index", built["bytes"] / size, "B/slice"),
            Row(f"{label}: open it", seen["open"], "ms"),
        ]
        for zoom in ZOOMS:
            name = f"{label}: 1/{zoom:,} of it" if zoom > 1 else f"{label}: all of it"
            rows.append(
                Row(
                    f"{name}, view",
                    seen[f"view {zoom}"],
                    "ms",
                    "NumPy sums all starts",
                    seen["scan"],
                    VIEW_MS,
                    "value",
                )
            )
            rows.append(
                Row(
                    f"{name}, answer",
                    seen[f"rects {zoom}"] * BYTES / 2**20,
                    "MiB",
                    budget=ANSWER_MIB,
                    budget_on="value",
                )
            )
        rows += [
            Row(
                f"{label}: all of it, {THREADS} tracks, view",
                seen["view all"],
                "ms",
                "NumPy sums all starts",
                seen["scan"],
                VIEW_MS,
                "value",
            ),
            Row(f"{label}: first view ever", seen["first"], "ms"),
            Row(f"{label}: names and hits of a search", seen["search"], "ms"),
            Row(f"{label}: next hit of one name in 200", seen["next"], "ms"),
            Row(f"{label}: next hit of a name that is there once", seen["once"], "ms"),
            Row(f"{label}: busy share of {ASKED} tracks", seen["busy"], "ms"),
            Row(f"{label}: memory that views took", seen["rss"], "MiB", budget=MEMORY_MIB, budget_on="value"),
        ]
    return rows


def _finishing() -> list[Row]:
    """Finish the same recording with the index, as `warplens profile` does in its own process, and without."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
        found = {}
        for step in ("finish", "finish_alone"):
            place = Path(folder) / step
            make_spool(place / "spool", FINISHED)
            found[step] = _apart(step, place)
    label = f"{FINISHED:.0e} ranges".replace("e+0", "e")
    return [
        Row(
            f"{label}: CPU to finish, with the index",
            found["finish"]["cpu"] / FINISHED * 1e9,
            "ns/range",
            "without",
            found["finish_alone"]["cpu"] / FINISHED * 1e9,
        ),
        Row(
            f"{label}: the index's part of finishing",
            found["finish"]["index"] / found["finish"]["wall"] * 100,
            "%",
        ),
    ]


def finish(folder: Path) -> dict[str, float]:
    """Finish the recording in `folder`, as always."""
    return measure(folder, [])


def finish_alone(folder: Path) -> dict[str, float]:
    """Finish the recording in `folder` as if it were too small for an index."""
    manifests.INDEXED = FINISHED + 1
    return measure(folder, [])


def _apart(step: str, report: Path) -> dict[str, float]:
    output = subprocess.run(
        [sys.executable, __file__, step, report], check=True, capture_output=True, text=True
    ).stdout
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def build(report: Path) -> dict[str, float]:
    """Build the index, then read the same columns alone."""
    manifest = open_store(report).parts[0].manifest
    target = building.path_of(report, manifest)
    begin, before = time.perf_counter(), time.process_time()
    building.build(report, manifest, target)
    wall, cpu = time.perf_counter() - begin, time.process_time() - before
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = LayerReader(LAYERS[0], report / str(manifest.tables["nvtx_ranges"]["file"]))
    before = time.process_time()
    rows.read_all()
    return {
        "wall": wall,
        "cpu": cpu,
        "rss": rss,
        "read": time.process_time() - before,
        "bytes": target.stat().st_size,
    }


def view(report: Path) -> dict[str, float]:
    """Ask the index that `build` left."""
    store = open_store(report)
    before = _resident()
    found: dict[str, float] = {}
    begin = time.perf_counter()
    index = LaneIndex.open(store, store.parts[0], None)
    found["open"] = (time.perf_counter() - begin) * 1e3
    origin, end = store.span
    asked = range(0, THREADS, THREADS // ASKED)
    found["first"] = _ms(lambda: index.viewport(origin, end, WIDTH, asked, LIMIT), 1)
    for zoom in ZOOMS:
        places = np.random.default_rng(1).uniform(origin, end - (end - origin) / zoom, 20)
        times, most = [], 0
        for place in places:
            look = partial(
                index.viewport, int(place), int(place + (end - origin) / zoom), WIDTH, asked, LIMIT
            )
            times.append(_ms(look))
            most = max(most, len(look().start))
        found[f"view {zoom}"], found[f"rects {zoom}"] = max(times), most
    found["view all"] = _ms(lambda: index.viewport(origin, end, WIDTH, None, LIMIT))
    found["rss"] = (_resident() - before) / 2**20
    names = index.names.search("operation 17")
    found["search"] = _ms(lambda: index.names.counts[index.names.search("operation 17")].sum())
    found["next"] = _ms(lambda: index.find(names[:1], (origin + end) // 2, end, 1))
    rare = index.names.counts.argmin()
    found["once"] = _ms(lambda: index.find([int(rare)], origin, end, 1))
    found["busy"] = _ms(lambda: index.busy(asked, origin, end))
    starts = np.arange(int(index.names.counts.sum() * ASKED // THREADS))
    found["scan"] = _ms(starts.sum, 3)
    return found


def _ms(work: Callable[[], Any], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        begin = (
            time.thread_time()
        )  # all is done in this thread, so that other work on the machine counts little
        work()
        times.append(time.thread_time() - begin)
    return statistics.median(times) * 1e3


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize()
    except OSError:
        return 0


if __name__ == "__main__":
    steps = {"build": build, "view": view, "finish": finish, "finish_alone": finish_alone}
    print(json.dumps(steps[sys.argv[1]](Path(sys.argv[2]))))
