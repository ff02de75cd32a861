"""Launches in CUDA graphs: replays of random graphs, of which only the last run of each node is in the buffers."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from warplens.convert.intrakernel.graphs import match_graphs
from warplens.convert.intrakernel.launches import Launches
from warplens.spool.wide import FIELDS

GPU = 7_000_000_000_000  # the GPU's clock minus the report's
Row = dict[str, int]
NAMES = ("correlation", "start", "end", "device", "stream", "name", "node", "grid", "id", "api")


class Story:
    """Kernels, and the launches of which a buffer tells."""

    def __init__(self) -> None:
        self.kernels: list[Row] = []
        self.noted: list[Row] = []
        self.reads: list[Row] = []
        self.truth: list[int] = []

    def kernel(self, start: int, length: int, node: int = 0, grid: int = 4, device: int = 0) -> int:
        number = len(self.kernels)
        self.kernels.append(
            {
                "start": start,
                "end": start + length,
                "node": node,
                "grid": grid,
                "device": device,
                "id": number,
            }
        )
        return number

    def launch(
        self, launched: int, over: int, of: int, lead: int = 900, tail: int = 1100, blocks: int = 4
    ) -> None:
        """A buffer that was noted, and read, at these times; it holds what kernel `of` wrote."""
        kernel = self.kernels[of]
        number = len(self.noted) + 1
        self.noted.append({"launch": number, "start": launched, "device": kernel["device"]})
        times = {"first_ns": GPU + kernel["start"] + lead, "last_ns": GPU + kernel["end"] - tail}
        self.reads.append(
            {"launch": number, "domain": 1, "start": over, "units": 4, "blocks": blocks, **times}
        )
        self.truth.append(of)

    def matched(self, known: dict[int, int] | None = None) -> list[int]:
        """Match; `known`: kernels of launches that need no graph."""
        launches = Launches(
            _rows("intrakernel_launch", self.noted),
            _rows("intrakernel_read", self.reads),
            np.arange(len(self.noted)),
        )
        table = {name: np.array([row.get(name, 0) for row in self.kernels], np.int64) for name in NAMES}
        order = np.argsort(table["start"], kind="stable")
        row = np.full(len(self.noted), -1, np.int64)
        place = np.argsort(order)
        for launch, kernel in (known or {}).items():
            row[launch] = place[kernel]
        found = match_graphs(launches, {name: values[order] for name, values in table.items()}, row)
        matched: list[int] = np.append(order, -1)[found].tolist()
        return matched


def _rows(kind: str, rows: list[Row]) -> Any:
    names = ["domain", *FIELDS[kind].split()]
    made = np.zeros(len(rows), [(name, "<u8" if name != "device" else "<i4") for name in names])
    for at, row in enumerate(rows):
        for name, value in row.items():
            made[name][at] = value
    return made


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("clock_known", [True, False])
def test_random_graphs(seed: int, clock_known: bool) -> None:
    """Nothing is matched wrongly; with a known clock, or several buffers, hardly anything is left."""
    dice = random.Random(seed)
    story = Story()
    now = 1_000_000
    lengths = [dice.randrange(30_000, 400_000) for _ in range(dice.randrange(3, 9))]
    watched = dice.sample(range(len(lengths)), dice.randrange(2, min(len(lengths), 4) + 1))
    noted_at = now
    known = {}
    if clock_known:
        number = story.kernel(now + 5_000, 200_000)
        story.launch(now, now + 900_000, number)
        known[0] = number
        now += 1_000_000
    last: dict[int, int] = {}
    for _ in range(dice.randrange(1, 6)):
        now += dice.randrange(10_000, 300_000)
        for node, length in enumerate(lengths):
            last[node] = story.kernel(now, length + dice.randrange(500), node + 1)
            now += length + dice.randrange(600, 5_000)
    for node in watched:
        story.launch(
            noted_at, now + 50_000, last[node], dice.randrange(400, 2_500), dice.randrange(600, 3_000)
        )
    found = story.matched(known)
    assert all(mine in (-1, true) for mine, true in zip(found, story.truth, strict=True)), (
        found,
        story.truth,
    )
    if clock_known:
        assert found == story.truth


def test_the_number_of_blocks_tells() -> None:
    story = Story()
    story.kernel(10_000, 100_000, node=1, grid=64)
    mine = story.kernel(120_000, 101_000, node=2, grid=4)
    story.launch(5_000, 500_000, mine)
    assert story.matched() == [mine]


def test_no_guess_where_two_would_do() -> None:
    story = Story()
    story.kernel(10_000, 100_000, node=1)
    story.launch(5_000, 500_000, story.kernel(120_000, 100_500, node=2))
    assert story.matched() == [-1]


def test_neither_of_another_gpu_nor_of_another_time() -> None:
    story = Story()
    story.kernel(10_000, 100_000, node=1, device=1)
    story.kernel(200_000, 100_000, node=2)
    story.kernel(900_000, 100_000, node=2)
    mine = story.kernel(400_000, 100_000, node=2)
    story.launch(350_000, 600_000, mine)
    assert story.matched() == [mine]
    story.noted[0]["start"] = 450_000
    assert story.matched() == [-1]
