"""Kernels in Numba's simulator record what they did: the real layout, read by the real decoder. No GPU is needed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.dsl.languages import PATIENT, answer
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.require("numba-cuda"), PATIENT]
PROGRAM = ROOT / "tests" / "dsl" / "programs" / "numba_simulate.py"
MARK, ASYNC, GENERATION, PAYLOAD = 1, 2, 4, 8


def simulate(case: str) -> Any:
    return answer("numba-cuda", PROGRAM, case, NUMBA_ENABLE_CUDASIM="1")


def of(told: Any, cta: int) -> list[list[Any]]:
    """The events of one block, warp after warp, in the order in which they ended."""
    return [event for event in told["events"] if event[0] == cta]


def test_dropped_records_are_counted_exactly_for_every_warp() -> None:
    told = simulate("overflow")
    assert told["units"] == [[cta, warp, True, 4, 6] for cta in range(2) for warp in range(2)]
    assert [event[:4] for event in told["events"]] == [
        [cta, "load", PAYLOAD, 3 * step + cta] for cta in range(2) for _ in range(2) for step in range(4)
    ]  # the first ones are kept
    assert (told["dropped"], told["needed"]) == (24, 10)


def test_blocks_and_threads_of_three_dimensions_are_counted_x_first() -> None:
    told = simulate("grid")
    assert [unit[:2] for unit in told["units"]] == [[cta, warp] for cta in range(12) for warp in range(2)]
    assert [event[3] for event in told["events"]] == [cta % 2 for cta in range(12) for _ in range(2)]


def test_regions_nest_and_cross() -> None:
    told = simulate("everything")
    assert told["out"] == [2 * (3 + 200)] * 32  # the kernel computed what it computes without regions
    for cta, (begin, end) in enumerate(told["spans"]):
        events = of(told, cta)
        assert [event[1:4] for event in events] == [
            ["load", PAYLOAD, 7],
            ["even", 0, None],
            ["load", PAYLOAD, 7],
            ["odd", MARK | PAYLOAD, 1],
            ["load", PAYLOAD, 7],
            ["even", 0, None],
            ["while", 0, None],
            ["while", 0, None],
            ["while", 0, None],
            ["outer", 0, None],
            ["inner", 0, None],
            ["first", 0, None],
            ["second", ASYNC | PAYLOAD, 406],
            ["tag 200", MARK, None],
        ]
        assert all(begin <= event[4] <= event[5] <= end for event in events)
        assert all(one[5] <= other[5] for one, other in pairwise(events))
        outer = next(event for event in events if event[1] == "outer")
        assert all(outer[4] <= event[4] for event in events if event[1] in ("load", "even", "odd", "while"))


def test_a_launch_shows_nothing_of_those_before() -> None:
    first, second, third = simulate("launches")
    assert [len(of(first, cta)) for cta in range(3)] == [8, 8, 8]
    assert [len(of(second, cta)) for cta in range(3)] == [3, 3, 3]
    assert [len(of(third, cta)) for cta in range(3)] == [5, 5, 0]
    assert all(
        event[2] == GENERATION | PAYLOAD for told in (first, second, third) for event in told["events"]
    )
    assert not any(told["garbled"] for told in (first, second, third))


def test_a_block_that_returns_early_leaves_its_records() -> None:
    told = simulate("leaves")
    assert [unit[2] for unit in told["units"]] == [True, False, True, False]
    assert [[event[1] for event in of(told, cta)] for cta in range(4)] == [["load", "store"], ["load"]] * 2


def test_only_the_blocks_and_warps_that_were_chosen_record() -> None:
    assert [unit[0] for unit in simulate("sampled")["units"]] == [0, 3, 6]
    assert [unit[:2] for unit in simulate("other_warps")["units"]] == [[0, 1], [0, 3], [1, 1], [1, 3]]


def test_warps_that_claim_no_place_are_counted() -> None:
    told = simulate("claim")
    assert (len(told["units"]), told["lost"], len(told["events"])) == (3, 2, 6)


def test_a_launch_larger_than_the_buffer_says_how_large_it_is() -> None:
    assert simulate("too_small") == [3, 5, 1]  # units that are there, units that were wanted, of which launch


def test_sample_launches_records_every_nth_launch() -> None:
    told = simulate("some_launches")
    assert [[len(one["events"]), one["lost"]] for one in told] == [
        [3, 0],
        [3, 0],
        [9, 0],
    ]  # the second shows what the first left


def test_a_ring_keeps_the_latest() -> None:
    told = simulate("ring")
    assert told["units"] == [[0, 0, True, 4, 8], [1, 0, True, 4, 8]]
    assert [event[1:3] for event in of(told, 0)] == [["load", 0], ["load", 0], ["load", 0], ["store", MARK]]


def test_switched_off_it_touches_nothing() -> None:
    assert simulate("off") == {"same": True, "out": 406}


def test_mistakes_are_told_with_what_to_do() -> None:
    unknown, payload, fraction = simulate("wrong")
    assert "no tag 'load' in this table, which has other" in unknown
    assert "no room for a payload: use mode 'slices' or 'claim'" in payload
    assert "a payload must be an integer" in fraction


def test_the_example_runs_simulated() -> None:
    program = """
import json
from tests.dsl.decoded import told
from warplens.intrakernel.dsl import numba
print(json.dumps([numba.ways(), told(numba.example("simulator"))]))
"""
    ways, found = answer("numba-cuda", "-c", program)
    assert ways["simulator"] is None
    assert found["units"] == [[cta, warp, True, 17, 0] for cta in range(4) for warp in range(2)]
    assert [event[1] for event in of(found, 0)][-4:] == ["compute", "store", "tile", "done"]
