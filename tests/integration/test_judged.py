"""The findings of real recordings are true, and they name what costs time there."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomllib

from tests.support.reports.judged import cases, compared, source

pytestmark = pytest.mark.require("native", "duckdb")


@pytest.mark.parametrize("case", cases(), ids=lambda path: path.stem)
def test_findings_are_those_of_the_case(case: Path, tmp_path: Path) -> None:
    path = source(tomllib.loads(case.read_text(encoding="utf-8")))
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    verdict = compared(case, tmp_path)
    assert not verdict.wrong, "\n".join(verdict.wrong)
