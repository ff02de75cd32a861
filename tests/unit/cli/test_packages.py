"""Which packages reading reports needs, and how to install those that are missing."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from warplens.cli import packages

PROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


def test_the_packages_are_the_dependencies_of_the_distribution() -> None:
    line = next(line for line in PROJECT.read_text(encoding="utf-8").splitlines() if line.startswith("dependencies = "))
    names = [name.replace("-", "_") for name in re.findall(r'"([\w-]+)', line)]
    assert sorted(names) == sorted(packages.DESK)


def test_only_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rich" else object())
    assert packages.missing() == ["rich"]
    monkeypatch.setattr(sys, "executable", "/a b/python")
    assert packages.how_to_install() == "Install what is missing with: '/a b/python' -m pip install rich"
