"""An answer is computed once for each open report and each set of arguments, and ends with the report."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from warplens.analysis.once import once
from warplens.errors import MissingData
from warplens.report import Report
from warplens.report import open as open_report
from warplens.rules.hosts import threads
from warplens.testing.timeline import timeline


def drawn(path: Path) -> Report:
    timeline(path / "r.warplens", "main |[step   ]", tick_ns=1_000, origin=1_000_000_000)
    return open_report(path / "r.warplens")


def test_each_report_and_argument_has_its_answer(tmp_path: Path) -> None:
    calls = []

    @once
    def answer(report: Report, number: int, *, twice: bool = False) -> list[int]:
        calls.append((number, twice))
        return [number * (1 + twice)]

    one, other = drawn(tmp_path / "one"), drawn(tmp_path / "other")
    assert answer(one, 1) is answer(one, 1)
    assert [answer(one, 2), answer(one, 2, twice=True), answer(other, 1)] == [[2], [4], [1]]
    assert calls == [(1, False), (2, False), (2, True), (1, False)]


def test_an_error_is_raised_anew(tmp_path: Path) -> None:
    calls = []

    @once
    def missing(report: Report) -> None:
        calls.append(report.path)
        raise MissingData("nothing")

    report = drawn(tmp_path)
    for _ in range(2):
        with pytest.raises(MissingData):
            missing(report)
    assert len(calls) == 2


def test_a_report_that_nobody_uses_is_not_kept(tmp_path: Path) -> None:
    report = drawn(tmp_path)
    threads(report)
    gone = weakref.ref(report)
    del report
    gc.collect()
    assert gone() is None
