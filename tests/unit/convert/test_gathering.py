"""Gathering: few rows share a row group, many have their own, and all stay in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from warplens.convert.gathering import FEW, Gathering


def _words(*texts: str) -> pa.Table:
    return pa.table({"word": pa.array(texts).dictionary_encode()})


def test_few_rows_are_written_together_many_by_themselves_and_in_order() -> None:
    written: list[tuple[str, pa.Table]] = []
    gathering = Gathering(lambda table, rows: written.append((table, rows)))
    many = _words(*["many"] * FEW)
    for rows in (_words("a"), _words("b", "a"), _words(), many, _words("c"), _words("d")):
        gathering.add("words", rows)
    gathering.add("others", _words("e"))
    gathering.finish()
    assert [(table, rows.num_rows) for table, rows in written] == [
        ("words", 3),
        ("words", FEW),
        ("words", 2),
        ("others", 1),
    ]
    assert written[0][1].column("word").to_pylist() == ["a", "b", "a"]
    assert written[2][1].column("word").to_pylist() == ["c", "d"]
    assert all(rows.column(0).num_chunks == 1 for _, rows in written)


def test_rows_are_copied_from_memory_that_changes() -> None:
    written: list[pa.Table] = []
    gathering = Gathering(lambda _, rows: written.append(rows))
    memory = np.array([1, 2, 3], np.int64)
    gathering.add(
        "numbers", pa.table({"n": pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(memory)])})
    )
    memory[:] = 0
    gathering.add("numbers", pa.table({"n": pa.array([4])}))
    gathering.finish()
    assert [rows.column("n").to_pylist() for rows in written] == [[1, 2, 3, 4]]


def test_enough_rows_are_passed_on_before_the_end() -> None:
    written: list[int] = []
    gathering = Gathering(lambda _, rows: written.append(rows.num_rows))
    for _ in range(4):
        gathering.keep("words", _words(*["x"] * (FEW // 2)))
    assert written == [FEW, FEW]
