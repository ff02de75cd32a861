"""The product has one name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Written in two parts, so that this file does not match.
OLD_NAME = "warp" + "line"
FROM_AN_INDEX = re.compile(
    rb"pip3? install(?: -\S+)* [\"']?(?:warplens|" + OLD_NAME.encode() + rb")(?![-/\w])"
)


def _tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("only a git checkout knows which files are tracked")
    return subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")[:-1]


def test_no_file_is_named_after_the_former_name() -> None:
    assert [name for name in _tracked() if OLD_NAME in name.lower()] == []


def test_only_the_changelog_mentions_the_former_name() -> None:
    hits = []
    for name in _tracked():
        path = ROOT / name
        if path.is_file():
            lines = path.read_bytes().lower().splitlines()
            hits += [name] * sum(OLD_NAME.encode() in line for line in lines)
    assert hits == ["CHANGELOG.md"]


def test_no_page_advises_installing_a_release_from_pypi() -> None:
    assert FROM_AN_INDEX.search(b"pip install -q warplens")
    assert not FROM_AN_INDEX.search(b"pip install dist/warplens-0.1-py3-none-any.whl")
    found = [
        name
        for name in _tracked()
        if (path := ROOT / name).is_file() and FROM_AN_INDEX.search(path.read_bytes())
    ]
    assert found == [str(Path(__file__).relative_to(ROOT))]
