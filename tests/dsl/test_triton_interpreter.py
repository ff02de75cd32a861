"""Kernels in Triton's interpreter record what they did: the real layout, read by the real decoder. No GPU is needed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.dsl.languages import PATIENT, answer
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.require("triton"), PATIENT]
PROGRAM = ROOT / "tests" / "dsl" / "programs" / "triton_interpret.py"
MARK, ASYNC, GENERATION, PAYLOAD = 1, 2, 4, 8


def interpret(case: str) -> Any:
    return answer("triton", PROGRAM, case, TRITON_INTERPRET="1")


def of(told: Any, cta: int) -> list[list[Any]]:
    """The events of one program, in the order in which they ended."""
    return [event for event in told["events"] if event[0] == cta]


def test_dropped_records_are_counted_exactly() -> None:
    told = interpret("overflow")
    assert told["units"] == [[cta, 0, True, 4, 6] for cta in range(3)]
    assert [event[:4] for event in told["events"]] == [
        [cta, "load", PAYLOAD, 3 * step + cta] for cta in range(3) for step in range(4)
    ]  # the first ones are kept
    assert (told["dropped"], told["needed"]) == (18, 10)


def test_every_program_of_a_grid_has_a_unit_of_its_own() -> None:
    told = interpret("grid")
    assert [unit[0] for unit in told["units"]] == list(range(12))
    # The payload is the place in x: linear numbers count x first.
    assert [event[3] for event in told["events"]] == [cta % 2 for cta in range(12)]


def test_regions_nest_cross_and_see_the_names_around_them() -> None:
    told = interpret("everything")
    assert told["out"] == [2 * (3 + 200 + 5)] * 2  # the kernel computed what it computes without regions
    for cta in range(2):
        assert [event[1:4] for event in of(told, cta)] == [
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
            ["second", ASYNC | PAYLOAD, 416],
            ["tag 200", MARK, None],
        ]


def test_times_are_in_order_and_within_the_unit() -> None:
    told = interpret("everything")
    for (begin, end), cta in zip(told["spans"], range(2), strict=True):
        events = of(told, cta)
        assert all(begin <= event[4] <= event[5] <= end for event in events)
        assert all(one[5] <= other[5] for one, other in pairwise(events))
        outer = next(event for event in events if event[1] == "outer")
        assert all(outer[4] <= event[4] for event in events if event[1] in ("load", "even", "odd", "while"))
        first, second = (next(event for event in events if event[1] == name) for name in ("first", "second"))
        assert first[4] <= second[4] <= first[5] <= second[5]


def test_a_launch_shows_nothing_of_those_before() -> None:
    first, second, third = interpret("launches")
    assert [len(of(first, cta)) for cta in range(4)] == [8, 8, 8, 8]
    assert [len(of(second, cta)) for cta in range(4)] == [3, 3, 3, 3]
    assert [len(of(third, cta)) for cta in range(4)] == [5, 5, 0, 0]
    assert [told["generation"] for told in (first, second, third)] == [1, 2, 3]
    assert all(
        event[2] == GENERATION | PAYLOAD for told in (first, second, third) for event in told["events"]
    )
    assert not any(told["garbled"] for told in (first, second, third))


def test_a_program_that_returns_early_leaves_its_records() -> None:
    told = interpret("leaves")
    assert [unit[2] for unit in told["units"]] == [True, False, True, False]
    assert [[event[1] for event in of(told, cta)] for cta in range(4)] == [["load", "store"], ["load"]] * 2


def test_sample_blocks_records_every_nth_program() -> None:
    told = interpret("sampled")
    assert [unit[0] for unit in told["units"]] == [0, 3, 6]
    assert len(told["events"]) == 6


def test_the_interpreter_has_warp_0_alone() -> None:
    assert interpret("other_warps")["units"] == []


def test_programs_that_claim_no_place_are_counted() -> None:
    told = interpret("claim")
    assert [unit[:3] for unit in told["units"]] == [[0, 0, True], [1, 0, True], [2, 0, True]]
    assert (told["lost"], len(told["events"])) == (2, 6)


def test_a_launch_larger_than_the_buffer_says_how_large_it_is() -> None:
    assert interpret("too_small") == [
        3,
        5,
        1,
    ]  # units that are there, units that were wanted, of which launch


def test_sample_launches_records_every_nth_launch() -> None:
    told = interpret("some_launches")
    assert [[len(one["events"]), one["lost"]] for one in told] == [
        [3, 0],
        [3, 0],
        [9, 0],
    ]  # the second shows what the first left


def test_a_ring_keeps_the_latest() -> None:
    told = interpret("ring")
    assert told["units"] == [[0, 0, True, 4, 8], [1, 0, True, 4, 8]]
    assert [event[1:3] for event in of(told, 0)] == [["load", 0], ["load", 0], ["load", 0], ["store", MARK]]


def test_cycles_become_nanoseconds() -> None:
    told = interpret("cycles")  # two cycles to a nanosecond
    for cta, (begin, end) in enumerate(told["spans"]):
        events = of(told, cta)
        assert len(events) == 50
        # Rates are fitted to the clocks at both ends: a nanosecond or two, not a factor.
        assert all(begin - 1000 <= event[4] <= event[5] <= end + 1000 for event in events)


def test_switched_off_it_touches_nothing() -> None:
    assert interpret("off") == {"same": True, "out": 3}


def test_mistakes_are_told_with_what_to_do() -> None:
    unknown, payload, generation, *others = interpret("wrong")
    assert "no tag 'load' in this table, which has other" in unknown
    assert "no room for a payload: use mode 'slices' or 'claim'" in payload
    assert "no room for a generation: use mode 'slices' or 'claim'" in generation
    assert all("the result of warplens.intrakernel.dsl.triton.bind(buffer)" in other for other in others[:3])
    assert "a payload must be one integer" in others[3]
    assert others[4] == "nothing"


def test_the_example_runs_interpreted() -> None:
    program = """
import json
from tests.dsl.decoded import told
from warplens.intrakernel.dsl import triton
print(json.dumps([triton.ways(), told(triton.example("interpreter"))]))
"""
    ways, found = answer("triton", "-c", program)
    assert ways["interpreter"] is None
    assert found["units"] == [[cta, 0, True, 17, 0] for cta in range(4)]
    assert [event[1] for event in of(found, 0)][-4:] == ["compute", "store", "tile", "done"]
