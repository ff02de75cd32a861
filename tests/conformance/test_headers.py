"""Each header of native/ compiles alone (tools/check_headers.py): who includes one needs nothing before it."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.thorough import THOROUGH

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.require("g++", "gcc"), pytest.mark.timeout(900)]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("check_headers")


def test_each_header_compiles_alone(tool: ModuleType) -> None:
    assert len(tool.headers()) > 200
    # On a new machine a part of them (half a second each); the next runs do the others.
    assert tool.complaints(most=None if THOROUGH else 12) == []


def test_a_header_without_its_includes_is_reported_until_it_is_mended(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(importlib.import_module("check_includes"), "ROOT", tmp_path)
    monkeypatch.setattr(tool, "KEPT", tmp_path / "kept")
    tool.reads.cache_clear()
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "inner.h").write_text("#pragma once\ninline std::size_t one() { return 1; }\n")
    (tmp_path / "spool" / "outer.h").write_text(
        '#pragma once\n#include <cstddef>\n#include "spool/inner.h"\n'
    )
    (complaint,) = tool.complaints()
    assert complaint.startswith("spool/inner.h does not compile alone:\n")
    assert tool.complaints() == [complaint]
    (tmp_path / "spool" / "inner.h").write_text(
        "#pragma once\n#include <cstddef>\ninline std::size_t one() { return 1; }\n"
    )
    tool.reads.cache_clear()
    assert tool.complaints() == []
    # An included header counts, too.
    (tmp_path / "spool" / "inner.h").write_text("#pragma once\n#error broken\n")
    tool.reads.cache_clear()
    assert len(tool.complaints(most=1)) == 1
    assert len(tool.complaints()) == 2
    tool.reads.cache_clear()
