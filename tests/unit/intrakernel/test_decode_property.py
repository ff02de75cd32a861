"""Whatever units record comes back as it was, and rubbish never breaks the decoder."""

from __future__ import annotations

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from warplens.errors import SpoolError
from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoding import decode
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

pytestmark = pytest.mark.slow

WRAP = 1 << 32


@st.composite
def unit(draw: st.DrawFn) -> BufferUnit | None:
    """A unit whose regions end one after the other, some within others."""
    if draw(st.integers(0, 9)) == 0:
        return None
    begin = draw(st.integers(0, 1 << 62))
    now, events = begin, []
    for _ in range(draw(st.integers(0, 12))):
        now += draw(st.one_of(st.integers(0, 1000), st.integers(0, 3 * 10**9)))
        length = draw(st.integers(0, min(now - begin, WRAP - 1)))
        payload = draw(st.one_of(st.none(), st.integers(0, WRAP - 1)))
        events.append(BufferEvent(draw(st.integers(0, layout.RESERVED_TAG - 1)), now - length, now, payload))
    more = draw(st.integers(0, 5)) if len(events) == 12 else 0
    return BufferUnit(
        events,
        draw(st.integers(0, WRAP - 1)),
        draw(st.integers(0, 63)),
        begin=begin,
        end=now + draw(st.integers(1, 10**9)),
        dropped_more=more,
    )


@given(st.lists(unit(), max_size=6), st.integers(1, 12), st.integers(1, WRAP - 1), st.booleans())
def test_recorded_events_come_back(
    units: list[BufferUnit | None], slots: int, generation: int, with_generation: bool
) -> None:
    found = decode(buffer_bytes(units, slots=slots, generation=generation, with_generation=with_generation))
    ran = [one for one in units if one is not None]
    kept = [(row, event) for row, one in enumerate(ran) for event in one.events[:slots]]
    assert found.events[["unit", "tag", "start", "end"]].tolist() == [
        (row, e.tag, e.start, e.end) for row, e in kept
    ]
    assert found.events["payload"].tolist() == [e.payload or 0 for _, e in kept]
    assert found.units[["cta", "warp", "start", "end"]].tolist() == [
        (one.cta, one.warp, one.begin, one.end) for one in ran
    ]
    wanted = [len(one.events) + one.dropped_more for one in ran]
    assert found.units["dropped"].tolist() == [max(0, count - slots) for count in wanted]
    assert found.needed_slots == max([1, *wanted])
    assert found.garbled == 0


@given(st.lists(unit(), max_size=6), st.integers(1, 4))
def test_rings_keep_the_latest_of_every_unit(units: list[BufferUnit | None], log_slots: int) -> None:
    slots = 1 << log_slots
    for one in filter(None, units):
        one.dropped_more = 0
        one.events = [
            BufferEvent(e.tag % layout.RING_TAGS, max(e.start, e.end - layout.RING_LONGEST), e.end)
            for e in one.events
        ]
    found = decode(buffer_bytes(units, slots=slots, mode="smem"))
    ran = [one for one in units if one is not None]
    kept = [(row, e.tag, e.start, e.end) for row, one in enumerate(ran) for e in one.events[-slots:]]
    assert found.events[["unit", "tag", "start", "end"]].tolist() == kept
    assert (found.dropped, found.garbled) == (sum(max(0, len(one.events) - slots) for one in ran), 0)


@given(
    st.lists(unit(), max_size=4), st.floats(0.5, 1.4)
)  # so that the ends of a unit's regions are less than 2^32 cycles apart
def test_cycles_come_back_as_ns(units: list[BufferUnit | None], ghz: float) -> None:
    cycles: list[BufferUnit | None] = []
    for one in units:
        if one is not None:
            one.dropped_more = 0
            one.end = max(one.end, one.begin + 20_000)  # long enough for a rate of its own
        cycles.append(
            one
            and BufferUnit(
                [
                    BufferEvent(e.tag, round((e.start - one.begin) * ghz), round((e.end - one.begin) * ghz))
                    for e in one.events
                ],
                begin=one.begin,
                end=one.end,
                clock_end=round((one.end - one.begin) * ghz),
            )
        )
    for one in filter(None, cycles):  # a region is shorter than 32 bits of cycles
        one.events = [BufferEvent(e.tag, max(e.start, e.end - WRAP + 1), e.end) for e in one.events]
    found = decode(buffer_bytes(cycles, slots=12, clock="clock"))
    expected = [(one.begin, e.end / ghz) for one in filter(None, cycles) for e in one.events]
    assert len(found.events) == len(expected)
    for end, (begin, wanted) in zip(found.events["end"].tolist(), expected, strict=True):
        assert abs(end - begin - wanted) <= 2 + 1e-4 * wanted


@given(st.lists(unit(), min_size=1, max_size=4), st.data())
def test_a_buffer_with_rubbish_in_it_is_read_or_refused(
    units: list[BufferUnit | None], data: st.DataObject
) -> None:
    mode = data.draw(st.sampled_from(layout.MODES))
    raw = buffer_bytes(
        [
            one
            and BufferUnit(
                [BufferEvent(e.tag % 256, e.start, e.end) for e in one.events],
                begin=one.begin,
                end=one.end,
                ended=data.draw(st.booleans()),
            )
            for one in units
        ],
        mode=mode,
        clock=data.draw(st.sampled_from(layout.CLOCKS)),
    )
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        rubbish = data.draw(st.binary(min_size=1, max_size=40))[: len(raw) - at]
        raw[at : at + len(rubbish)] = rubbish
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    try:
        found = decode(raw)
    except SpoolError:
        return
    assert found.units["events"].sum() == len(found.events)
    assert (found.events["end"] >= found.events["start"]).all()
    assert all(isinstance(text, str) for text in found.losses())
    if len(found.events):
        assert (found.events["unit"] < len(found.units)).all()
