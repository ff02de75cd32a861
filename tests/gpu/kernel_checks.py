"""What kernels of every language record on a GPU: the tests that Numba-CUDA and Triton share."""

from __future__ import annotations

from typing import Any

import pytest

MARK, ASYNC, PAYLOAD = 1, 2, 8
MANY = 1_000_000
TAGS = ("load", "store", "inner", "outer", "even", "odd", "while", "first", "second")


class KernelChecks:
    """Tests for the fixture `run` of a language: `run(kernel, blocks, count, buffer, num_warps=…, **options)` decodes the buffer."""

    library = ""  # that allocates the buffer
    last_payload = 0  # that `everything` records

    def allocate(self, *words: Any, **named: Any) -> Any:
        from warplens.intrakernel import allocate

        return allocate(*words, tags=TAGS, library=self.library, **named)

    def test_each_warp_tells_its_own_story(self, run: Any) -> None:
        buffer = self.allocate(64, 4)
        found = run("everything", 64, 3, buffer)
        units = found.units
        assert units["cta"].tolist() == [cta for cta in range(64) for _ in range(4)]
        assert units["warp"].tolist() == [0, 1, 2, 3] * 64
        assert units["ended"].all()
        assert (units["sm_begin"] == units["sm_end"]).all()
        assert (units["start"] <= units["end"]).all()
        assert found.losses() == []
        wanted = [
            "load",
            "even",
            "load",
            "odd",
            "load",
            "even",
            "while",
            "while",
            "while",
            "outer",
            "inner",
            "first",
            "second",
            "tag 200",
        ]
        for unit in range(len(units)):
            events = found.events[found.events["unit"] == unit]
            assert [buffer.tags.label(tag) for tag in events["tag"].tolist()] == wanted
            assert events["flags"].tolist()[-2:] == [ASYNC | PAYLOAD, MARK]
            assert events["payload"].tolist()[-2] == self.last_payload
            assert (events["start"] <= events["end"]).all()
            # Two timers of a GPU may be a tick apart.
            assert (events["start"] >= units["start"][unit] - 64).all()
            assert (events["end"] <= units["end"][unit] + 64).all()

    @pytest.mark.parametrize("clock", ["globaltimer", "clock"])
    def test_drops_are_exact_over_a_million_blocks(self, run: Any, clock: str) -> None:
        found = run("many", MANY, 10, self.allocate(MANY, slots=4, clock=clock), num_warps=1)
        assert len(found.units) == MANY
        assert (found.units["events"] == 4).all()
        assert found.dropped == 6 * MANY
        assert found.needed_slots == 10
        ctas = found.units["cta"][found.events["unit"]]
        first = found.events["payload"].reshape(MANY, 4)
        assert (first - ctas.reshape(MANY, 4) == [0, 3, 6, 9]).all()
        assert found.garbled == 0

    def test_launches_do_not_mix(self, run: Any) -> None:
        buffer = self.allocate(128, slots=64)
        for count in (50, 3, 20):
            found = run("many", 128, count, buffer, generation=True)
            assert (found.units["events"] == count).all()
            assert found.garbled == found.dropped == 0

    def test_blocks_that_return_early_leave_their_records(self, run: Any) -> None:
        buffer = self.allocate(128)
        run("many", 128, 20, buffer)
        found = run("leaves", 128, 0, buffer)
        assert found.units["ended"].tolist() == [True, False] * 64
        assert found.units["events"].tolist() == [2, 1] * 64

    def test_units_are_claimed_once_each(self, run: Any) -> None:
        found = run("many", 100, 2, self.allocate(100, 4, mode="claim", units=300))
        assert (len(found.units), found.units_lost, len(found.events)) == (300, 100, 600)
        assert len({(unit["cta"], unit["warp"]) for unit in found.units}) == 300

    def test_a_ring_keeps_the_latest(self, run: Any) -> None:
        buffer = self.allocate(64, 4, slots=64, mode="smem")
        found = run("many_bare", 64, 200, buffer)
        assert (found.units["events"] == 64).all()
        assert (found.units["dropped"] == 137).all()
        last = found.events[found.units["events"].cumsum() - 1]
        assert [buffer.tags.label(tag) for tag in last["tag"].tolist()] == ["store"] * 256

    def test_only_what_was_chosen_records(self, run: Any) -> None:
        found = run("many", 60, 2, self.allocate(60, (1, 3), sample_blocks=4))
        assert found.units["cta"].tolist() == [cta for cta in range(0, 60, 4) for _ in range(2)]
        assert set(found.units["warp"].tolist()) == {1, 3}

    def test_switched_off_it_touches_nothing(self, run: Any) -> None:
        buffer = self.allocate(64)
        run("many", 64, 4, buffer, enabled=False)
        assert len(buffer.decode().units) == 0
