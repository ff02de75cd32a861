"""Line programs of DWARF run natively; they must say what a plain reading of the standard says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from warplens import native

BASE = 13
LENGTHS = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]  # numbers behind each standard opcode, as gcc writes them
STEP, LINE_BASE, LINE_RANGE = 1, -5, 14
FILES = 3
ADDRESSES = np.arange(0, 400, 3, dtype=np.int64)


def _uleb(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _sleb(value: int) -> bytes:
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])


# A step is the bytes of one instruction and what it does to address, file and line; `row`: whether it makes a row.
STEPS = st.one_of(
    st.integers(BASE, 255).map(
        lambda code: (bytes([code]), "special", code),
    ),
    st.integers(0, 60).map(lambda by: (b"\x02" + _uleb(by), "address", by)),
    st.integers(-40, 300).map(lambda by: (b"\x03" + _sleb(by), "line", by)),
    st.integers(0, FILES + 2).map(lambda to: (b"\x04" + _uleb(to), "file", to)),
    st.integers(0, 99).map(lambda to: (b"\x05" + _uleb(to), "nothing", 0)),
    st.just((b"\x01", "row", 0)),
    st.just((b"\x08", "address", (255 - BASE) // LINE_RANGE)),
    st.integers(0, 70).map(lambda by: (b"\x09" + by.to_bytes(2, "little"), "address", by)),
    st.integers(0, 380).map(lambda to: (b"\x00\x09\x02" + to.to_bytes(8, "little"), "begin", to)),
    st.just((b"\x00\x03\x04ab", "nothing", 0)),
    st.just((b"\x00\x01\x01", "end", 0)),
)


def _plain(steps: list[tuple[bytes, str, int]]) -> dict[int, tuple[int, int]]:
    """Return file and line of the addresses, row by row."""
    places: dict[int, tuple[int, int]] = {}
    address, file, line = 0, 1, 1
    begun = False  # an address was set: what no address precedes is not looked at
    asked: list[int] = []
    before: tuple[int, int] | None = None
    for _, kind, value in steps:
        if kind == "special":
            address += (value - BASE) // LINE_RANGE
            line += LINE_BASE + (value - BASE) % LINE_RANGE
        elif kind == "address":
            address += value
        elif kind == "line":
            line += value
        elif kind == "file":
            file = value
        elif kind == "begin":
            address = value
            if before is None:
                begun, asked = True, [one for one in ADDRESSES.tolist() if one >= address]
        if kind in ("special", "row", "end"):
            while begun and asked and asked[0] < address:
                one = asked.pop(0)
                if before is not None and 1 <= before[0] <= FILES and before[1] > 0:
                    places.setdefault(one, before)
            before = (file, line)
            if kind == "end":
                address, file, line, before, begun = 0, 1, 1, None, False
    return places


def _run(section: bytes, *, end: int | None = None) -> dict[int, tuple[int, int]]:
    header = [0, len(section) if end is None else end, STEP, LINE_BASE, LINE_RANGE, BASE, 1, FILES]
    file, line = np.zeros(len(ADDRESSES), np.int64), np.zeros(len(ADDRESSES), np.int64)
    native.call(
        "run_line_program",
        np.frombuffer(section, np.uint8),
        np.array(header, np.int64),
        np.array(LENGTHS, np.uint8),
        ADDRESSES,
        file,
        line,
    )
    return {int(ADDRESSES[at]): (int(file[at]), int(line[at])) for at in np.flatnonzero(line)}


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=examples(200), deadline=None)
def test_rows_are_those_of_a_plain_reading(steps: list[tuple[bytes, str, int]]) -> None:
    assert _run(b"".join(step for step, _, _ in steps) or b"\x01") == _plain(steps)


@given(st.binary(min_size=1, max_size=300))
@settings(max_examples=examples(200), deadline=None)
def test_any_bytes_are_survived(program: bytes) -> None:
    assert all(1 <= file <= FILES and 0 < line < 1 << 31 for file, line in _run(program).values())


def test_a_header_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        _run(b"\x01", end=2)
