"""The witness shows which signals the whole group got."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from warplens.recording.launch.witness import Witness


@pytest.fixture
def witness() -> Iterator[Witness]:
    process = Witness()
    yield process
    process.close()


def test_each_signal_counts_once(witness: Witness) -> None:
    for number in (signal.SIGINT, signal.SIGRTMIN + 2):
        assert not witness.has(number)
        os.kill(witness.pid, number)
        assert witness.has(number)
        assert not witness.has(number)


def test_other_signals_stay_noted(witness: Witness) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(witness.pid, number)
    assert witness.has(signal.SIGINT)
    assert witness.has(signal.SIGTERM)


def test_a_killed_witness_has_nothing(witness: Witness) -> None:
    os.kill(witness.pid, signal.SIGKILL)
    os.waitpid(witness.pid, 0)
    assert not witness.has(signal.SIGINT)
    witness.close()
