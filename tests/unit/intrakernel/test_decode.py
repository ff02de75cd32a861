"""Decoding buffers of in-kernel records: every state that a kernel can leave one in."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from warplens.errors import SpoolError
from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoding import decode
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

WRAP = 1 << 32


def spans(found: object) -> list[tuple[int, int, int]]:
    return [(int(e["tag"]), int(e["start"]), int(e["end"])) for e in found.events]  # type: ignore[attr-defined]


def test_regions_come_back_with_their_times_tags_and_payloads() -> None:
    events = [
        BufferEvent(3, 1_000_100, 1_000_200, payload=7),
        BufferEvent(1, 1_000_050, 1_000_300),
        BufferEvent(2, 1_000_400, 1_000_400, flags=layout.MARK),
    ]
    found = decode(
        buffer_bytes([BufferUnit(events, cta=5, warp=2, sm=77, sm_end=78), None, BufferUnit([], cta=6)])
    )
    assert spans(found) == [(3, 1_000_100, 1_000_200), (1, 1_000_050, 1_000_300), (2, 1_000_400, 1_000_400)]
    assert found.events["flags"].tolist() == [layout.HAS_PAYLOAD, 0, layout.MARK]
    assert found.events["payload"].tolist() == [7, 0, 0]
    assert found.units[
        ["index", "cta", "warp", "sm_begin", "sm_end", "ended", "start", "end", "events", "dropped"]
    ].tolist() == [
        (0, 5, 2, 77, 78, True, 1_000_000, 2_000_000, 3, 0),
        (2, 6, 0, 0, 0, True, 1_000_000, 2_000_000, 0, 0),
    ]
    assert (found.start, found.end, found.losses()) == (1_000_000, 2_000_000, [])


def test_a_buffer_without_units_is_empty() -> None:
    found = decode(buffer_bytes([None, None]))
    assert (len(found.units), len(found.events), found.start, found.losses()) == (0, 0, 0, [])


def test_the_timers_low_words_wrap_within_a_unit() -> None:
    begin = 7 * WRAP - 1000
    events = [
        BufferEvent(1, begin + 100, begin + 200),
        BufferEvent(2, begin + 900, begin + 1100),
        BufferEvent(3, begin + 1200, begin + 1300),
    ]
    found = decode(buffer_bytes([BufferUnit(events, begin=begin, end=begin + 2000)]))
    assert spans(found) == [(e.tag, e.start, e.end) for e in events]


def test_a_unit_lasts_longer_than_the_low_words_reach() -> None:
    begin = 3 * WRAP + 123
    ends = [begin + 1_000_000_000 * step for step in range(1, 40)]
    units = [
        BufferUnit([BufferEvent(1, end - 500, end) for end in ends], begin=begin, end=ends[-1] + 10),
        BufferUnit([BufferEvent(2, begin + 5, begin + 9)], begin=begin),
    ]
    found = decode(buffer_bytes(units, slots=64))
    assert found.events["end"].tolist() == [*ends, begin + 9]
    assert found.garbled == 0


def test_dropped_events_are_counted_with_the_needed_slots() -> None:
    events = [BufferEvent(1, 1_000_000 + i, 1_000_001 + i) for i in range(20)]
    found = decode(
        buffer_bytes([BufferUnit(events), BufferUnit(events[:8]), BufferUnit(events[:9])], slots=8)
    )
    assert (len(found.events), found.dropped, found.needed_slots) == (24, 13, 20)
    assert found.units["dropped"].tolist() == [12, 0, 1]
    (said,) = found.losses()
    assert "13 records of 2 units" in said
    assert "slots=20" in said


def test_units_beyond_the_slices_are_lost_in_claim_mode_only() -> None:
    found = decode(
        buffer_bytes([BufferUnit([BufferEvent(1, 1_000_001, 1_000_002)])] * 3, mode="claim", claimed=10)
    )
    assert (found.units_lost, len(found.events)) == (7, 3)
    assert "units=10" in found.losses()[0]
    assert decode(buffer_bytes([BufferUnit()], claimed=10)).units_lost == 0


def test_only_units_of_the_launch_count() -> None:
    old = BufferUnit([BufferEvent(1, 1_000_001, 1_000_002)], generation=4)
    new = BufferUnit([BufferEvent(2, 1_000_001, 1_000_002)], generation=5)
    data = buffer_bytes([old, new], generation=5)
    assert decode(data).units["index"].tolist() == [1]
    assert decode(data, generation=4).units["index"].tolist() == [0]
    assert len(decode(data, generation=6).units) == 0


def test_a_unit_without_end_has_what_it_wrote_and_ends_with_it() -> None:
    events = [BufferEvent(1, 1_000_100, 1_000_200), BufferEvent(2, 1_000_050, 1_000_300)]
    found = decode(
        buffer_bytes([BufferUnit(events, ended=False), BufferUnit([BufferEvent(3, 1_000_001, 1_000_002)])])
    )
    assert spans(found) == [(1, 1_000_100, 1_000_200), (2, 1_000_050, 1_000_300), (3, 1_000_001, 1_000_002)]
    assert found.units["ended"].tolist() == [False, True]
    assert found.units["end"].tolist() == [1_000_300, 2_000_000]
    assert (found.unended, found.garbled) == (1, 0)
    assert "1 unit did not reach the end" in found.losses()[0]


def test_a_unit_without_end_has_nothing_of_an_older_launch() -> None:
    older = BufferEvent(9, 400_000, 400_100)  # 0.6 ms before
    slot = struct.pack("<IIII", older.start, older.end, older.tag, 0)
    found = decode(
        buffer_bytes([BufferUnit([BufferEvent(1, 1_000_100, 1_000_200)], ended=False)], stale=slot)
    )
    assert spans(found) == [(1, 1_000_100, 1_000_200)]


def test_the_generation_in_a_record_tells_what_times_cannot() -> None:
    again = struct.pack(
        "<IIII", 1_000_300, 1_000_400, 9 | layout.HAS_GENERATION << 16 | 6 << 24, 0
    )  # its times would fit
    data = buffer_bytes(
        [BufferUnit([BufferEvent(1, 1_000_100, 1_000_200)], ended=False)],
        stale=again,
        generation=7 + 256,
        with_generation=True,
    )
    found = decode(data)
    assert spans(found) == [(1, 1_000_100, 1_000_200)]
    assert found.events["flags"].tolist() == [layout.HAS_GENERATION]


def test_records_that_cannot_be_are_left_out_and_counted() -> None:
    right = BufferEvent(1, 1_000_100, 1_000_200)
    behind, before, nobodys = (
        BufferEvent(2, 2_100_000, 2_200_000),
        BufferEvent(3, 900_000, 1_000_300),
        BufferEvent(layout.RESERVED_TAG, 1_000_400, 1_000_500),
    )
    found = decode(buffer_bytes([BufferUnit([right, behind, before, nobodys]), BufferUnit([right])]))
    assert spans(found) == [(1, 1_000_100, 1_000_200)] * 2
    assert (found.garbled, found.dropped) == (3, 0)
    assert found.units["events"].tolist() == [1, 1]


def test_a_timer_that_disagrees_by_a_step_does_not_cost_the_record() -> None:
    found = decode(
        buffer_bytes([BufferUnit([BufferEvent(1, 999_968, 999_968), BufferEvent(2, 1_000_000, 2_000_032)])])
    )
    assert (len(found.events), found.garbled) == (2, 0)
    assert found.events["start"].tolist() == [1_000_000, 1_000_000]


def test_cycles_become_ns_by_each_units_own_rate() -> None:
    def unit(ghz: float, lasts: int) -> BufferUnit:
        cycles = round(lasts * ghz)
        events = [
            BufferEvent(1, WRAP - 500 + round(i * cycles / 10), WRAP - 500 + round((i + 1) * cycles / 10))
            for i in range(10)
        ]
        return BufferUnit(
            events,
            begin=5_000_000,
            end=5_000_000 + lasts,
            clock_begin=WRAP - 500,
            clock_end=WRAP - 500 + cycles,
        )

    found = decode(buffer_bytes([unit(1.98, 1_000_000), unit(1.2, 500_000)], slots=16, clock="clock"))
    assert np.abs(found.events["end"][:10] - (5_000_000 + np.arange(1, 11) * 100_000)).max() <= 1
    assert np.abs(found.events["start"][10:] - (5_000_000 + np.arange(10) * 50_000)).max() <= 1


def test_short_units_and_those_without_end_take_the_launchs_rate() -> None:
    long = BufferUnit([], begin=0, end=1_000_000, clock_begin=0, clock_end=2_000_000)
    short = BufferUnit(
        [BufferEvent(1, 100, 300)], begin=1000, end=1032, clock_begin=0, clock_end=400
    )  # its own rate would be 12 GHz
    killed = BufferUnit([BufferEvent(2, 1000, 3000)], begin=2000, ended=False)
    found = decode(buffer_bytes([long, long, short, killed], clock="clock"))
    assert spans(found) == [(1, 1050, 1150), (2, 2500, 3500)]
    assert not [note for note in found.notes if "rate" in note]


def test_a_launch_that_tells_no_rate_says_so() -> None:
    found = decode(
        buffer_bytes([BufferUnit([BufferEvent(1, 100, 300)], begin=1000, ended=False)], clock="clock")
    )
    assert spans(found) == [(1, 1100, 1300)]
    assert any("cycles, not ns" in note for note in found.losses())


def test_a_ring_keeps_the_latest_in_their_order() -> None:
    events = [BufferEvent(i % 200, 1_000_000 + 100 * i, 1_000_050 + 100 * i) for i in range(21)]
    found = decode(buffer_bytes([BufferUnit(events), BufferUnit(events[:3])], slots=8, mode="smem"))
    assert spans(found) == [(e.tag, e.start, e.end) for e in events[13:] + events[:3]]
    assert (found.dropped, found.needed_slots) == (13, 32)
    assert found.units["events"].tolist() == [8, 3]
    assert "the latest are kept" in found.losses()[0]


def test_a_ring_is_unwrapped_from_its_end() -> None:
    begin = WRAP - 1000
    ends = [begin + 900_000_000 * step for step in range(1, 21)]
    found = decode(
        buffer_bytes(
            [BufferUnit([BufferEvent(1, end - 40, end) for end in ends], begin=begin, end=ends[-1] + 5)],
            slots=16,
            mode="smem",
        )
    )
    assert found.events["end"].tolist() == ends[4:]
    assert found.garbled == 0
    one = BufferUnit([BufferEvent(1, 100, 140)], begin=0, end=200)
    several = [
        one,
        BufferUnit(
            [BufferEvent(1, 100, 140), BufferEvent(1, 3_000_000_000, 3_000_000_040)], begin=0, end=WRAP + 5
        ),
    ]
    found = decode(buffer_bytes(several, slots=16, mode="smem"))
    assert found.events["end"].tolist() == [140, 140, 3_000_000_040]


def test_only_the_events_that_began_first_are_kept_where_few_are_asked_for() -> None:
    units = [
        BufferUnit([BufferEvent(u, 1_000_000 + 10 * i + u, 1_000_005 + 10 * i + u) for i in range(5)], cta=u)
        for u in range(3)
    ]
    found = decode(buffer_bytes(units, keep=7))
    assert (
        sorted(found.events["start"].tolist()) == sorted(e.start for unit in units for e in unit.events)[:7]
    )
    assert (found.surplus, found.units["events"].sum(), found.dropped) == (8, 7, 0)


def test_a_buffer_that_is_cut_off_gives_what_is_there() -> None:
    data = buffer_bytes([BufferUnit([BufferEvent(1, 1_000_001, 1_000_002)], cta=i) for i in range(5)])
    found = decode(data[: 256 + 2 * (64 + 16 * 8) + 30])
    assert found.units["cta"].tolist() == [0, 1]
    assert any("truncated: it has 2 of 5" in note for note in found.losses())


@pytest.mark.parametrize(
    ("at", "value", "says"),
    [
        (0, 0x12345678, "overwritten"),
        (4, 2 | 256 << 16, "version 2"),
        (8, 9, "contradicts"),
        (12, 7, "contradicts"),
        (20, 0, "contradicts"),
        (24, 8, "contradicts"),
    ],
)
def test_a_head_that_is_none_is_refused(at: int, value: int, says: str) -> None:
    data = buffer_bytes([BufferUnit()])
    struct.pack_into("<I", data, at, value)
    with pytest.raises(SpoolError, match=says):
        decode(data)


def test_bytes_that_are_no_buffer_are_refused() -> None:
    with pytest.raises(SpoolError, match="10 bytes"):
        decode(bytes(10))
    with pytest.raises(SpoolError, match="layout"):
        decode(bytes(1000), layout="other")


def test_the_reference_layout_is_read() -> None:
    words = [3, 1000, 50, 0, 4, 1100, 20, 1, 4, 900, 500, 2, 9, 0, 0, 0, 0]
    found = decode(np.array(words, np.int64), layout="nuggets")
    assert [(e["tag"], e["start"], e["end"], e["payload"]) for e in found.events] == [
        (0, 1000, 1050, 4),
        (1, 1100, 1120, 4),
        (2, 900, 1400, 9),
    ]
    assert found.units["cta"].tolist() == [4, 9]
    assert (found.dropped, found.slots) == (0, 4)
    more = decode(np.array([9, *words[1:]], np.int64), layout="nuggets")
    assert (more.dropped, more.needed_slots, len(more.events)) == (5, 9, 3)
    with pytest.raises(SpoolError, match="int64"):
        decode(bytes(20), layout="nuggets")
