"""Tests in this folder run beside packages of the machine: what those warn of is not ours, and must fail no test."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
pytest.register_assert_rewrite("tests.gpu.kernel_checks")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let warnings be warnings: Numba's of small grids, say, which the project's settings make errors."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
