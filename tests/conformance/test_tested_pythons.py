"""What we say of Pythons is what was tested: pyproject.toml, README and guides name those of tests/tested_pythons.json and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = json.loads((ROOT / "tests" / "tested_pythons.json").read_text(encoding="utf-8"))
RANGE = re.compile(r"(?:CPython|Python)s? 3\.(\d+)(?:–| to (?:CPython )?)3\.(\d+)")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
MINORS = {int(name[2:]) for name in TESTED if not name.endswith("t")}
# Claimed, and not in the table yet: `make recording-tests ARGS="here --keep"` on a machine that has them, then `make docs`.
PENDING = {10, 12, 13}


def test_each_passed() -> None:
    assert all(one["passed"] > 500 for one in TESTED.values())
    assert all(one["version"].startswith(f"{name.rstrip('t')}.") for name, one in TESTED.items())


def test_the_distribution_names_them() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = {int(minor) for minor in re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', text)}
    assert named == MINORS | PENDING
    assert not MINORS & PENDING, "take those that are in the table out of PENDING"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_claims_no_others(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    claimed = {minor for first, last in RANGE.findall(text) for minor in range(int(first), int(last) + 1)}
    untested = claimed - MINORS - PENDING
    assert not untested, f"{page.name} claims Python 3.{sorted(untested)}, with which nothing was tested"


def test_the_readme_claims_some() -> None:
    assert RANGE.search((ROOT / "README.md").read_text(encoding="utf-8"))
