"""The walks for newcomers lead through files and names that exist, in at most twelve steps each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WALK = (ROOT / "docs" / "dev" / "walk.md").read_text(encoding="utf-8")
WALKS = {title: text for title, _, text in (part.partition("\n") for part in WALK.split("\n## ")[1:])}
STEP = re.compile(r"^\d+\. ", re.MULTILINE)
PLACE = re.compile(r"`((?:src|native|web)/[\w/.]+)`(?: `(\w+)`)?")


def test_there_are_four_walks() -> None:
    assert len(WALKS) == 4


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_is_short_and_each_step_names_a_place(title: str) -> None:
    steps = STEP.split(WALKS[title])[1:]
    assert 5 <= len(steps) <= 12
    assert all(PLACE.search(step) for step in steps)


@pytest.mark.parametrize(("path", "name"), sorted(set(PLACE.findall(WALK))))
def test_a_place_exists(path: str, name: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"\b{name}\b", text), f"docs/dev/walk.md names {name}, which {path} has no more"
