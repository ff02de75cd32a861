"""Every name that docs/explain/nvtx-migration.md promises is there, with the binding and without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import warplens.nvtx
from warplens.nvtx import _absent

pytestmark = pytest.mark.require("native")

PAGE = Path(__file__).parents[3] / "docs" / "explain" / "nvtx-migration.md"


def promised() -> list[str]:
    """Calls in the right column of the table for nvtx-hs: `name(` and `domain.name(`."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("## From nvtx-hs")
    cells = [
        line.split("|")[2] for line in table.splitlines() if line.startswith("| ") and "---" not in line
    ][1:]
    return sorted({name for cell in cells for name in re.findall(r"\b(?:domain\.)?[a-z_]\w*(?=\()", cell)})


@pytest.mark.parametrize("name", promised())
def test_a_promised_name_is_there(name: str) -> None:
    places: tuple[Any, ...] = (
        (warplens.nvtx.Domain, _absent.Domain) if name.startswith("domain.") else (warplens.nvtx,)
    )
    for place in places:
        assert callable(getattr(place, name.removeprefix("domain.")))


def test_the_map_is_whole() -> None:
    assert len(promised()) >= 25
    assert {
        "name_thread",
        "name_category",
        "rgb",
        "uint64",
        "start_end_range",
        "domain.destroy",
        "attached",
    } <= set(promised())
