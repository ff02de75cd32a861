"""What the rules find in recordings of real GPUs, against plain Python on the files themselves.

Why they are right is in docs/dev/findings.md. The folder of recordings lies beside the checkout, or these are skipped.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from warplens.importers.importing import import_file
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the recordings of real GPUs are not here ({FOLDER})"
)
Spans = list[tuple[int, int]]


def finding(tmp_path: Path, name: str, rule: str) -> Finding:
    """The only finding of a rule in a recording."""
    import_file(FOLDER / name, tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        (found,) = judge(report, Selection(), [rule]).findings
    return found


def rows(name: str, text: str) -> list[tuple[Any, ...]]:
    """What a query on the original says."""
    with closing(sqlite3.connect(f"file:{FOLDER / name}?mode=ro&immutable=1", uri=True)) as source:
        return source.execute(text).fetchall()


def alone(wanted: Spans, other: Spans) -> Spans:
    """The stretches in which something of the first kind went on and nothing of the second: event by event."""
    events = sorted(
        [
            (t, what, step)
            for spans, what in ((wanted, 0), (other, 1))
            for a, b in spans
            for t, step in ((a, 1), (b, -1))
        ]
    )
    count = [0, 0]
    found: Spans = []
    since: int | None = None
    for time, what, step in events:
        if since is not None and time > since:
            found.append((since, time))
        count[what] += step
        since = time if count[0] and not count[1] else None
    return found


def length(spans: Spans) -> int:
    """Length of the union."""
    return sum(end - start for start, end in alone(spans, []))


@pytest.mark.slow
def test_a_model_that_is_moved_to_the_gpu_layer_by_layer(tmp_path: Path) -> None:
    name = "nsys/h100_2gpu_1s.sqlite"
    found = finding(tmp_path, name, "transfers_not_overlapped")
    exposed: Spans = []
    for device in (0, 1):
        kernels = rows(name, f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = {device}")
        copies = rows(
            name,
            f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE deviceId = {device} AND copyKind IN (1, 2)",
        )
        first, last = min(start for start, _ in kernels), max(end for _, end in kernels)
        exposed += alone(
            [(max(a, first), min(b, last)) for a, b in copies if a < last and b > first], kernels
        )
    assert found.bound == length(exposed)
    assert found.bound > 0.9 * 969_447_605
    assert found.severity == "low"  # a fix wins 0.02 %: there is nothing to compute beside the copies


@pytest.mark.slow
def test_a_value_that_is_moved_to_the_gpu_in_every_step(tmp_path: Path) -> None:
    name = "nsys/mfu_2gpu_before.sqlite"
    found = finding(tmp_path, name, "unneeded_sync")
    assert (found.subject, found.occurrences) == ("aten::copy_", 33)
    most = 0
    for device, pid in rows(name, "SELECT DISTINCT deviceId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL"):
        tables = ("KERNEL", "MEMCPY", "MEMSET")
        work = [
            span
            for table in tables
            for span in rows(
                name, f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_{table} WHERE deviceId = {device}"
            )
        ]
        busy = alone(work, [])
        idle = [(one[1], other[0]) for one, other in pairwise(busy)]
        waits = rows(
            name,
            f"""SELECT r.start, r.end FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
                WHERE s.value LIKE 'cudaStreamSynchronize%' AND r.globalTid >> 24 = {pid} >> 24 ORDER BY r.start""",
        )
        total = 0
        for (start, end), behind in zip(
            waits, [start for start, _ in waits[1:]] + [busy[-1][1]], strict=True
        ):
            lost = sum(max(min(b, behind) - max(a, start), 0) for a, b in idle)
            total += min(end - start, lost)
        most = max(most, total)
    # 27 us of the idle time on that GPU had the next work launched already (gpu_utilization: unknown): no wait is to blame for them. The
    # graph knows that part of the rest stays: the host launches slower than the GPU works.
    assert found.priced_by == "what-if"
    assert most / 2 < (found.estimate or 0) < most - 27_040


@pytest.mark.slow
def test_ranks_that_wait_in_an_all_to_all(tmp_path: Path) -> None:
    found = finding(tmp_path, "kineto/dlrm_8ranks", "collective_skew")
    begins: dict[tuple[str, int], list[int]] = {}
    for path in sorted((FOLDER / "kineto" / "dlrm_8ranks").glob("rank*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        starts: dict[str, list[int]] = {}
        for event in events:
            if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
                starts.setdefault(event["name"], []).append(event["ts"])
        for name, own in starts.items():
            for number, start in enumerate(sorted(own)):
                begins.setdefault((name, number), []).append(start)
    assert {len(starts) for starts in begins.values()} == {8}
    skew = [(min(starts) * 1000, max(starts) * 1000) for starts in begins.values()]
    assert found.bound == length(skew)
    assert max(b - a for a, b in skew) > 7_000_000  # rank 7 comes 7.6 ms after rank 1
    assert "rank 7 is last" in found.title


@pytest.mark.slow
def test_communication_that_no_kernel_hides(tmp_path: Path) -> None:
    found = finding(tmp_path, "kineto/dlrm_8ranks", "exposed_communication")
    exposed: Spans = []
    most = (0, 0)
    for path in sorted((FOLDER / "kineto" / "dlrm_8ranks").glob("rank*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        kernels = [
            (e["name"], e["ts"] * 1000, (e["ts"] + e["dur"]) * 1000)
            for e in events
            if e.get("cat") == "kernel"
        ]
        communication, others = (
            [row[1:] for row in kernels if row[0].startswith("nccl") == wanted] for wanted in (True, False)
        )
        own = alone(communication, others)
        exposed += own
        most = max(most, (length(own), length(communication)))
    assert found.bound == length(exposed)
    assert most[0] > 0.97 * most[1]
    assert found.estimate is not None
    assert found.estimate < 0.05 * found.bound  # nearly all of it is waiting, which overlapping does not win
