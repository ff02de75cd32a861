"""Which packages reading reports needs, and how to install those that are missing."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tests.support.held_packages import runtime
from warplens.cli.checks import packages


def test_the_packages_are_the_dependencies_of_the_distribution() -> None:
    names = [need.name.replace("-", "_") for need in runtime()]
    assert sorted(names) == sorted(packages.READER)


def test_only_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rich" else object())
    assert packages.missing() == ["rich"]
    monkeypatch.setattr(sys, "executable", "/a b/python")
    assert packages.how_to_install() == "Install what is missing with: '/a b/python' -m pip install rich"
