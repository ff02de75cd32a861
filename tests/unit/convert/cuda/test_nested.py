"""Calls of the driver API that the runtime made: the agent leaves them out where it sees both at once, the reader the others."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.unit.convert.cuda.spools import DRIVER, api, report, work
from warplens.convert.cuda.nested import nested
from warplens.testing import spool_writer as sw

OPEN = [(100, 0, 1, 0, 0)]
ALL_APIS = 1 | 2
CALLS = [
    api(1, 1_000, 1_100),
    api(1, 1_010, 1_090, name=DRIVER, domain=1),  # the same call
    api(2, 1_095, 1_099, name=DRIVER, domain=1),  # within it, too, with a number of its own
    api(3, 1_050, 1_060, 11, name=DRIVER, domain=1),  # another thread's
    api(4, 1_090, 1_110, name=DRIVER, domain=1),  # ends later: damage, but no part
    api(5, 2_000, 2_100, name=DRIVER, domain=1),
    api(6, 3_000, 3_100, name=DRIVER, domain=1),
    api(6, 3_000, 3_100),  # ends and begins at once
]


@pytest.mark.parametrize(
    ("control", "left"),
    [
        (sw.control(OPEN), [(1, "runtime"), (3, "driver"), (4, "driver"), (5, "driver"), (6, "runtime")]),
        # Where it is not known what was asked for: those that work could be of, too.
        (None, [(1, "runtime"), (3, "driver"), (4, "driver"), (2, "driver"), (5, "driver"), (6, "runtime")]),
    ],
    ids=["as a rule", "without a control file"],
)
def test_a_call_is_one_row(tmp_path: Path, control: bytes | None, left: list[tuple[int, str]]) -> None:
    works = [work(number, 9_000 + number, 9_010 + number) for number in (1, 5, 6)]
    found = report(tmp_path, {"cuda_api": CALLS[::-1], "cuda_kernel": works}, control=control)
    assert found.columns("cuda_api", "correlation", "api") == left
    ids = {row["correlation"]: row["id"] for row in found["cuda_api"]}
    assert found.columns("kernels", "correlation", "api") == [(number, ids[number]) for number in (1, 5, 6)]
    assert [row["id"] for row in found["cuda_api"]] == list(range(len(left)))


def test_all_calls_on_request(tmp_path: Path) -> None:
    found = report(tmp_path, {"cuda_api": CALLS}, control=sw.control(OPEN, cuda_flags=ALL_APIS))
    assert len(found["cuda_api"]) == len(CALLS)


def test_against_the_definition() -> None:
    dice = random.Random(5)
    for _ in range(200):
        rows = []
        for _ in range(dice.randrange(1, 40)):
            begin = dice.randrange(50)
            rows.append((begin, begin + dice.randrange(20), dice.random() < 0.5, dice.randrange(3)))
        rows.sort(key=lambda row: (row[0], -row[1], row[2]))
        start, end, tid = (np.array([row[place] for row in rows], np.int64) for place in (0, 1, 3))
        driver = np.array([row[2] for row in rows])
        wanted = [
            row[2]
            and any(
                not other[2] and other[3] == row[3] and other[0] <= row[0] and row[1] <= other[1]
                for other in rows
            )
            for row in rows
        ]
        assert nested(driver, tid, start, end).tolist() == wanted
