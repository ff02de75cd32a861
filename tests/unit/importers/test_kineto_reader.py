"""The native reader says what Python's `json` says, whatever the order of keys, the spaces, the escapes and the pieces it comes in."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from warplens.importers.kineto.layout import COUNTS, FIELDS, KINDS, NULL, OPEN_ARRAY, WHOLE, WIDE
from warplens.importers.kineto.native import TraceParser

pytestmark = pytest.mark.require("native")
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTS = st.integers(-(1 << 62), 1 << 62)
NUMBERS = INTS | st.floats(-1e15, 1e15)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
)
TIMES = st.decimals(-1_000_000_000_000_000, 1_700_000_000_000_000, places=3) | st.integers(
    0, 1_700_000_000_000_000
).map(Decimal)
KNOWN = {
    "External id": INTS,
    "Sequence number": INTS,
    "Input Dims": st.lists(st.lists(st.integers(0, 9))),
    "stack": ANYTHING,
    "Ev Idx": ANYTHING,
}
EVENTS = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.just("cpu_op"),
        "name": NAMES,
        "pid": st.integers(0, 3),
        "tid": st.integers(0, 3) | NAMES,
        "ts": TIMES,
    },
    optional={
        "dur": TIMES.map(abs),
        "args": st.fixed_dictionaries({}, optional=KNOWN),
        "extra": ANYTHING,
        "id": ANYTHING,
    },
)


class _Numbers(json.JSONEncoder):
    def default(self, value: object) -> Any:
        return f"@{value}@"  # unquoted below: a decimal as it is


def text_of(event: dict[str, Any], order: list[int], ascii_only: bool, indent: int | None) -> str:
    """Return an event as JSON with its keys in some order, decimals written out."""
    keys = sorted(event, key=lambda key: order[list(event).index(key) % len(order)] if order else 0)
    made = json.dumps({key: event[key] for key in keys}, cls=_Numbers, ensure_ascii=ascii_only, indent=indent)
    return (
        made.replace('"@', "").replace('@"', "")
        if "@" not in json.dumps({**event, "ts": 0, "dur": 0}, default=str)
        else ""
    )


def ns(value: Decimal) -> int:
    return int((value * 1000).to_integral_value(ROUND_HALF_UP))


def read(data: bytes, sizes: list[int]) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Return the facts of a text that comes in pieces of these sizes, and its operations."""
    with TraceParser() as reader:
        at = 0
        while at < len(data):
            size = sizes[at % len(sizes)] if sizes else len(data)
            reader.feed(data[at : at + size])
            at += size
        reader.finish()
        ends, texts = reader.texts()
        raw_ends, raws = reader.texts(raw=True)

        def text(code: int, all_ends: Any = ends, all_texts: bytes = texts) -> str | None:
            return (
                None if code < 0 else all_texts[all_ends[code - 1] if code else 0 : all_ends[code]].decode()
            )

        columns = {
            name: reader.take("op", name).tolist()
            for name in ("start", "end", "lane", "name", "external", "sequence", "shapes")
        }
        lanes = [(pid, text(tid) if texts & 2 else tid) for pid, tid, texts in reader.lanes().tolist()]
        rows = [
            (start, end, lanes[lane], text(name), external, sequence, text(shapes, raw_ends, raws))
            for start, end, lane, name, external, sequence, shapes in zip(*columns.values(), strict=True)
        ]
        return reader.facts | reader.counts, rows


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(EVENTS, max_size=8),
    st.lists(st.integers(0, 9), min_size=8, max_size=8),
    st.booleans(),
    st.sampled_from([None, 0, 2]),
    st.lists(st.integers(1, 40), max_size=6),
)
def test_events_are_what_json_makes_of_them(
    events: list[dict[str, Any]], order: list[int], ascii_only: bool, indent: int | None, sizes: list[int]
) -> None:
    texts = [(event, text) for event in events if (text := text_of(event, order, ascii_only, indent))]
    facts, rows = read(f"[{','.join(text for _, text in texts)}]".encode(), sizes)
    expected = []
    for event, text in texts:
        parsed = json.loads(text)
        assert parsed["name"] == event["name"]
        args, start = event.get("args", {}), ns(event["ts"])
        shapes = args.get("Input Dims")
        expected.append(
            (
                *(
                    start,
                    start + ns(event.get("dur", Decimal(0))),
                    (event["pid"], event["tid"]),
                    event["name"],
                ),
                *(args.get("External id", NULL), args.get("Sequence number", NULL)),
                None if shapes is None else json.dumps(shapes, separators=(",", ":")),
            )
        )
    assert rows == expected
    assert (facts["ending"], facts["broken"], facts["events"]) == (WHOLE, 0, len(texts))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=4))
def test_any_bytes_end_in_a_verdict(data: bytes, sizes: list[int]) -> None:
    for begin in (b"", b"[", b'{"traceEvents": [', b'[{"ph": "X", "args": {"grid": '):
        read(begin + data, sizes)


def test_every_cut_of_a_text_reads_the_same_in_any_pieces() -> None:
    event = (
        '{"ph": "X", "cat": "cpu_op", "name": "a\\"\\u00e4\\\\", "pid": 1, "tid": "t", "ts": 1.25e2, '
        '"dur": 3, "args": {"External id": 4}}'
    )
    whole = f'\ufeff{{"a": [1, {{"b": "}}]"}}], "traceEvents": [{event}, {event}\n], "schemaVersion": 1}}\n'.encode()
    expected = read(whole, [])
    assert len(expected[1]) == 2
    for size in range(1, len(whole)):
        assert read(whole, [size]) == expected


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1234567890123456.789", 1234567890123456789),
        ("1669783687464181", 1669783687464181000),
        ("0.0004", 0),
        ("0.0005", 1),
        ("-1.5", -1500),
        ("1e3", 1_000_000),
        ("12.5E-1", 1250),
        ("0.1234999", 123),
        ("2305843009213693.951", 2305843009213693951),
        ("0e999999999", 0),
        ("1e-999999999", 0),
        ("00012", 12_000),
        ("1.", 1000),
    ],
)
def test_times_keep_their_nanoseconds(text: str, time: int) -> None:
    _, rows = read(
        f'[{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"dur":0,"ts":{text}}}]'.encode(), []
    )
    assert [row[0] for row in rows] == [time]


@pytest.mark.parametrize(
    "text", ["1e30", "9223372036854775807", "-1e19", "NaN", "1.2.3", "1e", "--1", "null"]
)
def test_times_that_are_none_are_left_out(text: str) -> None:
    facts, rows = read(
        f'[{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"dur":0,"ts":{text}}}]'.encode(), []
    )
    assert (rows, facts["no_time"]) == ([], 1)


def test_columns_are_taken_once_and_known_by_name() -> None:
    with TraceParser() as reader:
        reader.feed(b"[")
        reader.finish()
        assert reader.facts["ending"] == OPEN_ARRAY
        assert set(reader.counts) == set(COUNTS)
        for kind in KINDS:
            columns = [name for name in FIELDS if has(reader, kind, name)]
            assert columns, kind
        with pytest.raises(KeyError):
            reader.take("mark", "correlation")
    assert set(FIELDS) >= WIDE


def has(reader: TraceParser, kind: str, name: str) -> bool:
    try:
        reader.take(kind, name)
    except KeyError:
        return False
    return True


def test_keys_are_not_mistaken_for_the_ones_that_came_before() -> None:
    # More keys than are kept, keys longer than are kept, one the begin of another, other spaces, and each event with others than the last.
    events, expected = [], []
    for number in range(400):
        args = (
            {"External i": 7, "External id": number, "External id2": 8}
            if number % 2
            else {"External id": number}
        )
        extra = {f"key {number}": number, "k" * (number % 60 + 1): [number], "Sequence number": number + 1}
        order = dict(sorted((args | extra).items(), reverse=number % 3 == 0))
        text = json.dumps(
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": "a",
                "pid": 1,
                "tid": 2,
                "ts": number,
                "dur": 1,
                "args": order,
            }
        )
        events.append(text.replace(": ", ":" if number % 5 == 0 else " : " if number % 7 == 0 else ": "))
        expected.append((number, number + 1))
    facts, rows = read(f"[{','.join(events)}]".encode(), [97])
    assert (facts["broken"], [row[4:6] for row in rows]) == (0, expected)


@pytest.mark.parametrize(
    "broken",
    [
        '"ts": 1 "dur": 2',
        '"ts": 1, "dur" 2',
        ', "ts": 1',
        '"ts": 1,, "dur": 2',
        '"ts": 1,',
        '"ts": , "dur": 2',
    ],
)
def test_a_broken_event_with_familiar_keys_is_left_out(broken: str) -> None:
    right = '{"ts": 1, "dur": 2, "ph": "X", "cat": "cpu_op", "args": {}}'
    facts, rows = read(f"[{right}, {right}, {{{broken}}}, {right}]".encode(), [])
    assert (facts["broken"], len(rows)) == (1, 3)


def test_of_a_key_that_stands_there_twice_the_last_counts() -> None:
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": "p", "pid": 1, "tid": 5, "tid": "t", "id": "i", "id": 3, "ts": 1, "ts": 2}'
    assert [row[:3] for row in read(f"[{event}]".encode(), [])[1]] == [(2000, 2000, (1, "t"))]
