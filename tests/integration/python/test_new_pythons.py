"""The tests of recording passed with each CPython of Debian's unstable: tools/recording_tests.py ran them with these sources."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
FEW = 500  # tests: with less, most were skipped or never collected

pytestmark = pytest.mark.require("new-pythons")


def test_each_passed_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    found: dict[str, Any] = importlib.import_module("recording_tests").results()
    assert found
    assert {name: result.failed for name, result in found.items() if result.failed} == {}
    assert {name: result.passed for name, result in found.items() if result.passed < FEW} == {}
