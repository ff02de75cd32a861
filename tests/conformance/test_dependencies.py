"""Packages are held: those of `.venv` by tools/requirements.lock, those of a user by ranges whose ends are tested."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.held_packages import LOCK, ROOT, SUPPORTED, needs, pinned, runtime

RUNNING = sys.version_info[:2]


def test_an_unpinned_package_is_not_in_the_environment() -> None:
    told = Path(sys.prefix) / "unpinned.txt"
    if not told.exists():
        pytest.skip("this environment was not made by tools/setup.py")
    if told.read_text(encoding="utf-8"):
        pytest.skip(f"the lock file has no wheel for this Python of: {told.read_text(encoding='utf-8')}")
    pins = pinned(RUNNING)
    sites = [str(path) for path in Path(sys.prefix).glob("lib/python*/site-packages")]
    there = {
        canonicalize_name(part.metadata["Name"]): part.version
        for part in importlib.metadata.distributions(path=sites)
    }
    unpinned = {name: version for name, version in there.items() if pins.get(name) != version}
    assert not unpinned, (
        f"{LOCK.name} pins other versions, or none: {unpinned}. make upgrade, or make native for what it pins"
    )


@pytest.mark.parametrize("version", SUPPORTED, ids=lambda version: ".".join(map(str, version)))
def test_the_lock_file_pins_what_pyproject_asks_for(version: tuple[int, int]) -> None:
    pins = pinned(version)
    lacking = [
        str(need)
        for need in needs()
        if not need.specifier.contains(pins.get(canonicalize_name(need.name), "0.dev0"))
    ]
    assert not lacking, f"not in {LOCK.name} for this Python: {lacking}. make upgrade"


def test_the_lock_file_names_versions_and_nothing_of_a_machine() -> None:
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pin = re.compile(
        r'[a-z0-9-]+==[\w.]+( ; python_version (<|>=) "3\.\d+"( and python_version (<|>=) "3\.\d+")?)?'
    )
    assert len(lines) > 50
    assert [line for line in lines if not pin.fullmatch(line)] == []
    assert lines == sorted(lines, key=lambda line: line.partition("=")[0])


@pytest.mark.parametrize("need", runtime(), ids=lambda need: str(need.name))
def test_a_range_ends_where_tests_end(need: Requirement) -> None:
    """The newest that a user gets has the major version of the newest that is tested; the oldest is in an environment of its own."""
    bounds = {part.operator: part.version for part in need.specifier}
    assert sorted(bounds) == ["<", ">="], f"{need} is no range in pyproject.toml"
    tested = max(
        int(version.partition(".")[0])
        for version in (pinned(one)[canonicalize_name(need.name)] for one in SUPPORTED)
    )
    assert bounds["<"] == str(tested + 1), f"{need} allows {bounds['<']}, and {LOCK.name} has {tested}"


def test_no_package_is_named_with_an_address() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"index-url|extra-index|find-links|@ https?:", text)
