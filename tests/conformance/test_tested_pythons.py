"""What we say of Pythons is what was tested: pyproject.toml, README and guides name those of tests/tested_pythons.json and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = json.loads((ROOT / "tests" / "tested_pythons.json").read_text(encoding="utf-8"))
RANGE = re.compile(r"(?:CPython|Python)s? 3\.(\d+)(?:–| to (?:CPython )?)3\.(\d+)")
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "explain").glob("*.md")),
]
MINORS = {int(name[2:]) for name in TESTED if not name.endswith("t")}
FREE_THREADED = {name for name in TESTED if name.endswith("t")}


def test_each_passed() -> None:
    assert all(one["passed"] > (50 if name in FREE_THREADED else 500) for name, one in TESTED.items())
    assert all(one["version"].startswith(f"{name.rstrip('t')}.") for name, one in TESTED.items())


def test_the_distribution_names_them() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = {int(minor) for minor in re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', text)}
    assert named == MINORS


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_claims_no_others(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    claimed = {minor for first, last in RANGE.findall(text) for minor in range(int(first), int(last) + 1)}
    untested = {f"3.{minor}" for minor in claimed - MINORS} | set(
        re.findall(r"\b3\.\d+t\b", text)
    ) - FREE_THREADED
    assert not untested, (
        f"{page.name} claims Python {', '.join(sorted(untested))}, with which nothing was tested"
    )


def test_the_readme_claims_some() -> None:
    assert RANGE.search((ROOT / "README.md").read_text(encoding="utf-8"))
