"""Which thread a system id stands for, whether ids lie close together or far apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplens.convert.threads import Threads
from warplens.spool.reader import SpoolNames


@given(st.lists(st.one_of(st.integers(1, 40), st.integers(1, (1 << 32) - 1)), max_size=60))
def test_each_system_id_is_one_thread(tids: list[int]) -> None:
    times = np.arange(1, len(tids) + 1, dtype=np.int64)
    names = SpoolNames()
    threads_of = (
        Threads.of_spool(names, np.empty((0, 3), np.int64)).match(np.array(tids, np.int64), times).tolist()
    )
    assert len(set(threads_of)) == len(set(tids))
    assert len(set(zip(threads_of, tids, strict=True))) == len(set(tids))
    first = {tid: tids.index(tid) + 1 for tid in tids}
    assert {thread: names.threads[thread][2] for thread in threads_of} == {
        thread: first[tid] for thread, tid in zip(threads_of, tids, strict=True)
    }


@pytest.mark.parametrize("far", [0, 1 << 31])
def test_an_id_that_is_used_again_is_another_thread(far: int) -> None:
    names = SpoolNames(threads={0: (7, 0, 10), 1: (7, 0, 50), 2: (8 + far & 0x7FFFFFFF, 0, 20)})
    threads = Threads.of_spool(names, np.empty((0, 3), np.int64))
    tids = np.array([7, 8 + far & 0x7FFFFFFF, 7, 7], np.int64)
    assert threads.match(tids, np.array([12, 30, 49, 60], np.int64)).tolist() == [0, 2, 0, 1]
