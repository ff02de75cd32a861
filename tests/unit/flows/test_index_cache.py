"""The folder for indexes of others' reports: private, and nothing stays in it for ever."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from warplens.flows.viewing import index_cache


def test_an_index_unused_for_a_month_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = index_cache()
    assert folder == tmp_path / "warplens" / "indexes"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    now, long_ago = time.time(), time.time() - 40 * 86_400
    for name, times in {
        "new.lanes": (now, now),
        "read.lanes": (now, long_ago),
        "old.lanes": (long_ago, long_ago),
        "thesis.txt": (long_ago, long_ago),
    }.items():
        (folder / name).touch()
        os.utime(folder / name, times)
    assert index_cache() == folder
    assert sorted(path.name for path in folder.iterdir()) == ["new.lanes", "read.lanes", "thesis.txt"]
