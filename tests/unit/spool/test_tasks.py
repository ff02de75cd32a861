"""Parents and lanes of ranges of tasks, against the slow oracle; tasks that are carried over chunks and slices."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples, few
from tests.unit.spool.decoding import decode, decode_all
from tests.unit.spool.oracle import Tasked, parents
from warplens.testing import spool_writer as sw

_numbers = st.tuples(
    st.integers(0, 30),
    st.integers(0, 12),
    st.integers(0, 1),
    st.integers(0, 2),
    st.booleans(),
    st.integers(0, 12),
)
programs = st.tuples(
    st.lists(_numbers, max_size=25).map(
        lambda items: [
            Tasked(start, start + length, number, thread, task, start_end, parent if start_end else 0)
            for number, (start, length, thread, task, start_end, parent) in enumerate(items, 1)
        ]
    ),
    st.dictionaries(st.integers(1, 2), st.integers(0, 25), max_size=2),
)


def spool(ranges: list[Tasked], makers: dict[int, int], per_chunk: int = 5) -> bytes:
    texts = {
        task: sw.definition("task", name=f"t{task}", library="x", parent=maker)
        for task, maker in makers.items()
    }
    chunks = [sw.strings(texts), sw.records(7, [sw.define(task, task) for task in makers])]
    for thread in sorted({one.thread for one in ranges}):
        records: list[bytes] = []
        now = 0
        for one in sorted((one for one in ranges if one.thread == thread), key=lambda one: (one.end, one.id)):
            if not one.start_end and one.task != now:
                records.append(sw.meta("task_switch", number=one.task, start=one.start))
                now = one.task
            records.append(
                sw.event(
                    "start_end" if one.start_end else "range", one.start, one.end, payload=one.id, flags=1
                )
            )
            if one.start_end:
                # The end may come from anywhere: the task in force then is not the range's.
                records[-1] += sw.origin(thread, one.id, parent=one.parent, task=one.task)
        chunks += [
            sw.records(thread, records[first : first + per_chunk])
            for first in range(0, len(records), per_chunk)
        ]
    return sw.spool(chunks)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(300))
@given(program=programs, rows_per_slice=st.sampled_from([64, 1 << 20]))
def test_parents_agree_with_the_oracle(
    tmp_path_factory: pytest.TempPathFactory,
    program: tuple[list[Tasked], dict[int, int]],
    rows_per_slice: int,
) -> None:
    ranges, makers = program
    rows, _ = decode(tmp_path_factory.mktemp("spool"), spool(ranges, makers), rows_per_slice)
    by_id = {one.id: one for one in ranges}
    ordered = [by_id[row["payload_int"]] for row in rows]
    assert [(row["start"], row["end"], row["thread"], row["task"] or 0) for row in rows] == [
        (one.start, one.end, one.thread, one.task) for one in ordered
    ]
    assert [-1 if row["parent"] is None else row["parent"] for row in rows] == parents(ordered, makers)
    lanes: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for row in rows:
        where = ("thread", row["thread"]) if row["style"] == "PushPop" else ("task", row["task"])
        lanes.setdefault((*where, row["depth"]), []).append((row["start"], row["end"]))
    for lane in lanes.values():
        assert not [
            1
            for a in range(len(lane))
            for b in range(a)
            if lane[a][0] < lane[b][1] and lane[b][0] < lane[a][1]
        ]


@pytest.mark.slow
@pytest.mark.parametrize("rows_per_slice", few([64, 1 << 20, 1000], 2))
def test_many_tasks_in_slices(tmp_path: Path, rows_per_slice: int) -> None:
    """Requests that overlap, each a task with a child range and a sync call; the loop around them all."""
    ranges = [Tasked(0, 100_000, 1)]
    for task in range(1, 3_001):
        start = task * 20
        ranges.append(Tasked(start, start + 500, 3 * task, 0, task, True))
        ranges.append(Tasked(start + 10, start + 400, 3 * task + 1, 0, task, True, parent=3 * task))
        ranges.append(Tasked(start + 11, start + 12, 3 * task + 2, 0, task))
    rows, _ = decode(tmp_path, spool(ranges, {}, 400), rows_per_slice)
    names = {row["id"]: row["payload_int"] for row in rows}
    above = {row["payload_int"]: names.get(row["parent"]) for row in rows}
    assert above[1] is None
    for task in range(1, 3_001):
        assert (above[3 * task], above[3 * task + 1], above[3 * task + 2]) == (1, 3 * task, 3 * task + 1)
    assert {(row["task"], row["depth"]) for row in rows if row["style"] == "StartEnd"} == {
        (t, d) for t in range(1, 3_001) for d in (0, 1)
    }


def test_a_task_ends_at_a_switch_of_threads_and_goes_on_in_later_chunks(tmp_path: Path) -> None:
    mark = sw.event("mark", 10)
    chunks = [
        sw.records(
            0, [mark, sw.meta("task_switch", number=1), mark, sw.meta("thread_switch", thread=1), mark]
        ),
        sw.records(0, [mark, sw.meta("task_switch", number=0), mark]),
        sw.records(1, [sw.meta("task_switch", number=2), mark, sw.meta("thread_switch", thread=0), mark]),
        sw.records(1, [mark]),
    ]
    tables = decode_all(tmp_path, sw.spool(chunks))
    assert sorted((row["thread"], row["task"] or 0) for row in tables["nvtx_marks"]) == [
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 1),
        (0, 1),
        (1, 0),
        (1, 2),
        (1, 2),
    ]


def test_open_ranges_of_tasks(tmp_path: Path) -> None:
    """What was open at a kill: start/end ranges keep task and parent, and are parents of what ended; push/pop ranges have no task."""
    chunks = [
        sw.records(
            0,
            [
                sw.meta("task_switch", number=1),
                sw.event("range", 30, 40),
                sw.event("start_end", 35, 36),
                sw.origin(0, 9, parent=7),
            ],
        ),
        sw.open_table(0, [sw.event("range", 5, 0)]),
        sw.open_table(
            sw.NO_THREAD,
            [
                sw.slot(sw.event("start_end", 20, 0), 0, 8, parent=7, task=1),
                sw.slot(sw.event("start_end", 10, 0), 0, 7, task=1),
            ],
        ),
    ]
    rows, _ = decode(tmp_path, sw.spool(chunks, end_ns=100))
    assert [(row["start"], row["end"], row["task"], row["parent"], row["unfinished"]) for row in rows] == [
        (5, 100, None, None, True),
        (10, 100, 1, 0, True),
        (20, 100, 1, 1, True),
        (30, 40, 1, 2, False),
        (35, 36, None, 1, False),
    ]
