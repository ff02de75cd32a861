"""Stacks of threads that run in parallel: impossible, repeated and abandoned stacks, and true shares.

With each Python of this machine that has no GIL, and with the one that runs this for comparison. The program's calls are known, and it
takes the time of each part by the clock of the thread. What the sampler itself takes stands in one row.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _sampled_work import CALLS
from harness import Row
from python_sampling import HZ, WORK, own_time, started
from tests.support.programs.python_running import free_threaded, version_of
from tests.support.reports.python_stacks import ON_CPU, samples_of
from tests.support.reports.spool_records import read_spools

GIVEN_UP, DUE, MISSED, READ_AGAIN = 4, 6, 7, 18  # CpuNotice
PARTS = sorted(CALLS["step"])


def run(quick: bool) -> list[Row]:
    """Measure it all; `quick`: shorter, for a look."""
    seconds = 3.0 if quick else 20.0
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        pythons = [("{}.{}".format(*sys.version_info), sys.executable)]
        pythons += [("{}.{}t".format(*version_of(python)), python) for python in free_threaded()]
        return [
            row
            for version, python in pythons
            for count in (1, 2, 4, 64)
            for row in _rows(
                Path(name), f"{version}, {count} thread{'s' if count > 1 else ''}", python, seconds, count
            )
        ]


def _rows(folder: Path, label: str, python: str, seconds: float, count: int) -> Iterator[Row]:
    out = folder / "timed.json"
    capture, process = started(folder, [python, WORK, "timed", str(seconds), out, str(count)], is_open=True)
    used = 0
    while process.poll() is None:
        used = own_time(process.pid) or used
        time.sleep(0.05)
    notices, stacks, parts = Counter[int](), Counter[tuple[str, ...]](), Counter[str]()
    for record in capture.records("cpu_notice"):
        notices[record["notice"]] += record["value"]
    for spool in read_spools(capture.spool):
        for sample in samples_of(spool):
            names = tuple(name.rpartition(".")[2] for name in sample.names)
            if "known" in names:
                below = names[names.index("known") :]
                stacks[below] += sample.count
                if sample.flags & ON_CPU and len(below) > 2:
                    parts[below[2]] += sample.count
    total = stacks.total()
    impossible = sum(
        n
        for stack, n in stacks.items()
        if any(b not in CALLS.get(a, ()) for a, b in itertools.pairwise(stack))
    )
    taken = notices[DUE] - notices[MISSED]
    note = f"of {total} samples; {notices[READ_AGAIN]} read again, {notices[GIVEN_UP]} given up"
    yield Row(
        f"{label}: impossible stacks",
        100 * impossible / max(1, total),
        "%",
        budget=1.0,
        budget_on="value",
        note=note,
    )
    truth = json.loads(out.read_text())["parts"]
    apart = (
        sum(abs(parts[name] / max(1, parts.total()) - truth[name] / sum(truth.values())) for name in PARTS)
        / 2
    )
    note = "total variation distance of the shares of five functions"
    yield Row(
        f"{label}: shares beside the program's own clock",
        100 * apart,
        "%",
        budget=4.0 if count <= 2 else None,
        budget_on="value",
        note=note,
    )
    yield Row(
        f"{label}: one look",
        used / 1e3 / max(1, taken),
        "us of CPU",
        note=f"{taken} of {notices[DUE]} looks at {HZ} Hz taken",
    )
