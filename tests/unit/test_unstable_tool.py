"""tools/unstable.py says what keeps it from making a root file system."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.support.optional_dependencies import ROOT


def test_a_path_with_a_space_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tool = importlib.import_module("unstable")
    monkeypatch.setattr(tool, "check", lambda: None)
    monkeypatch.setattr(tool, "SYSTEM", tmp_path / "a space" / "root")
    monkeypatch.setattr(tool, "BOOTED", tmp_path / "booted")
    monkeypatch.setattr(tool, "STAMP", tmp_path / "stamp")
    with pytest.raises(tool.Lacking) as refused:
        tool.make([])
    assert "a space in its path" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "a space").exists()
