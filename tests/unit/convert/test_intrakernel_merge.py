"""The clock merge end to end: clocks that drift, timers that tick, kernels that CUPTI places with noise; the truth is known.

Random captures, always the same ones: seeds are fixed.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.convert.cuda.spools import api
from tests.unit.convert.test_intrakernel_tables import GPU, LAUNCH, kernel, note, read, report
from warplens import catalog
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

TICK = 32
COUNT = 60
Row = dict[str, Any]


@dataclass
class Capture:
    """Launches of a process on one GPU; `drift`: how much faster its clock runs than the report's."""

    seed: int
    drift: float
    gap: int  # ns between launches, about

    def gpu(self, time: float) -> int:
        """What the GPU's timer shows at a time of the report."""
        return int(GPU + time * (1 + self.drift)) // TICK * TICK

    def write(self, folder: Path, kernels: bool = True) -> tuple[Path, list[int]]:
        """Write the report; return it, and when each launch really began."""
        dice = random.Random(self.seed)
        noted, reads, calls, ran = [], [], [], []
        pieces: dict[int, Sequence[bytes]] = {}
        truth = []
        now = 1_000_000
        for number in range(1, COUNT + 1):
            now += dice.randrange(self.gap // 2, 2 * self.gap)
            begin = now + dice.randrange(4_000, 20_000)
            first = begin + dice.randrange(400, 2_500)
            last = first + dice.randrange(5_000, 200_000)
            end = last + dice.randrange(600, 3_000)
            noise = round(dice.gauss(0, 60))
            units = []
            for cta in range(2):
                edges = sorted(dice.randrange(first, last) for _ in range(6))
                regions = [
                    BufferEvent(at % 2, self.gpu(edges[2 * at]), self.gpu(edges[2 * at + 1]))
                    for at in range(3)
                ]
                units.append(
                    BufferUnit(
                        regions,
                        cta=cta,
                        sm=cta,
                        begin=self.gpu(first if cta == 0 else edges[0]),
                        end=self.gpu(last),
                    )
                )
            noted.append(note(number, now, generation=number))
            over = end + dice.randrange(2_000, 30_000)
            found = read(number, over, 0, 0)
            reads.append({**found, "first_ns": self.gpu(first), "last_ns": self.gpu(last)})
            pieces[number] = [bytes(buffer_bytes(units, slots=4, generation=number))]
            if kernels and dice.random() < 0.9:  # a few kernels were lost
                calls.append(api(number, now + 500, now + 2_500, name=LAUNCH))
                ran.append(kernel(number, begin + noise, end + noise))
            truth.append(first)
            now = over
        report(folder, noted, reads, pieces, calls=calls, kernels=ran)
        return folder / "r.warplens", truth


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("drift", "gap"), [(0.0, 200_000), (2e-5, 30_000_000), (-4e-5, 800_000_000)])
def test_regions_lie_inside_and_truth_within_what_is_stated(
    tmp_path: Path, seed: int, drift: float, gap: int
) -> None:
    path, truth = Capture(seed, drift, gap).write(tmp_path)
    with open_report(path) as opened:
        launches = opened.table("intrakernel_launches").sort_by("launched").to_pylist()
        outside = opened.sql(
            """SELECT count(*) AS number FROM intrakernel_events e JOIN intrakernel_launches l ON e.launch = l.id
               JOIN intrakernel_units u ON e.unit = u.id LEFT JOIN kernels k ON l.kernel = k.id
               WHERE NOT (e."start" <= e."end" AND u."start" <= e."start" AND e."end" <= u."end"
                          AND l."start" <= u."start" AND u."end" <= l."end"
                          AND (k.id IS NULL OR k."start" <= l."start" AND l."end" <= k."end"))"""
        ).to_pylist()[0]["number"]
        assert outside == 0
        table = catalog.find("stats.tables", "intrakernel_sum").load().table(opened, Selection())
    assert {row["merged"] for row in launches} == {"kernel", "neighbours"}
    assert sum(row["kernel"] is not None for row in launches) > COUNT * 0.7
    off = [abs(row["start"] - begin) - row["uncertainty"] for row, begin in zip(launches, truth, strict=True)]
    assert sum(far > 0 for far in off) <= COUNT // 50, sorted(off)[-3:]
    # Where launches are far apart it is neighbours that are uncertain.
    assert all(row["uncertainty"] < 5_000 for row in launches if row["merged"] == "kernel")
    if gap * COUNT > 10**9:
        assert all(abs(row["drift"] + 1e6 * drift) < 10 for row in launches)
    (said,) = (text for text in notes(table) if "is known to" in text)
    assert f"{int(statistics.median(row['uncertainty'] for row in launches)):,} ns" in said
    assert f"{max(row['uncertainty'] for row in launches):,} ns" in said


@pytest.mark.parametrize("seed", range(4))
def test_without_kernels_the_truth_lies_in_the_bracket(tmp_path: Path, seed: int) -> None:
    path, truth = Capture(seed, 1e-5, 400_000).write(tmp_path, kernels=False)
    with open_report(path) as opened:
        launches = opened.table("intrakernel_launches").sort_by("launched").to_pylist()
    assert {row["merged"] for row in launches} == {"bracket"}
    assert {row["kernel"] for row in launches} == {None}
    for row, begin in zip(launches, truth, strict=True):
        assert abs(row["start"] - begin) <= row["uncertainty"]
        assert row["launched"] <= row["start"] + row["uncertainty"]
