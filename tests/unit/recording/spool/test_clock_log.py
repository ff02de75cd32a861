"""The log of the clocks stays small however long a recording lasts, and ties its whole time to the clocks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from warplens.disk import files
from warplens.recording.agent.library import ClockSample
from warplens.recording.clock_log import MOST, ClockLog, thinned
from warplens.spool.clock import read_samples

SECOND = 1_000_000_000
DAY = 86_400


def reading(second: int) -> ClockSample:
    """The clocks at a time; the counter runs 3 times as fast."""
    return ClockSample("tsc", 3 * second * SECOND, second * SECOND, second * SECOND + 7)


def test_each_reading_is_a_line(tmp_path: Path) -> None:
    log = ClockLog(tmp_path / "clocks.jsonl")
    for second in range(100):
        log.add(reading(second))
    assert [sample.monotonic for sample in read_samples(tmp_path / "clocks.jsonl")] == [
        second * SECOND for second in range(100)
    ]
    assert log.missed == 0


@pytest.mark.slow
def test_of_three_days_there_is_no_more_than_of_some_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[bytes] = []

    class Fast:
        """Lines between two files that are written anew; opening the file 259,200 times would take long."""

        def __enter__(self) -> Fast:
            return self

        def __exit__(self, *why: object) -> None:
            pass

        def write(self, line: bytes) -> None:
            added.append(line)

    path = tmp_path / "clocks.jsonl"
    log = ClockLog(path)
    monkeypatch.setattr(files, "append", lambda path: Fast())
    largest = 0
    for second in range(3 * DAY):
        log.add(reading(second))
        largest = max(largest, len(log._samples))
    assert largest <= MOST
    kept = [sample.monotonic // SECOND for sample in log._samples]
    assert kept[0] == 0
    assert kept[-4096:] == list(range(3 * DAY - 4096, 3 * DAY))
    gaps = [after - before for before, after in itertools.pairwise(kept)]
    assert max(gaps) <= 180  # no time is far from a reading
    in_file = [sample.monotonic // SECOND for sample in read_samples(path)]
    assert len(in_file) <= 8200
    assert in_file == kept[: len(in_file)]


def test_thinning_keeps_the_first_and_the_latest() -> None:
    kept = [
        sample.monotonic // SECOND for sample in thinned([reading(second) for second in range(1000)], 100, 9)
    ]
    assert kept == [*range(0, 900, 100), *range(900, 1000)]


def test_a_file_that_was_deleted_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "clocks.jsonl"
    log = ClockLog(path)
    log.add(reading(1))
    log.add(reading(2))
    path.unlink()
    log.write_again()
    log.add(reading(3))
    assert [sample.monotonic // SECOND for sample in read_samples(path)] == [1, 2, 3]


def test_lines_that_cannot_be_written_are_counted(tmp_path: Path) -> None:
    log = ClockLog(tmp_path / "missing" / "clocks.jsonl")
    log.add(reading(1))
    log.add(reading(2))
    assert log.missed == 2
