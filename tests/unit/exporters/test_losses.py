"""What an export says that it lost: only what this report has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import drawn
from warplens import catalog
from warplens.exporters.losses import losses
from warplens.model.tables import TABLES

LOSES = (
    "always",
    ("kernels", "kernels"),
    ("ranges or kernels", "kernels", "nvtx_ranges"),
    ("colours", "nvtx_ranges.color"),
)


def test_only_tables_and_columns_with_something_in_them_are_lost(tmp_path: Path) -> None:
    plain = drawn(tmp_path / "plain", "main |[step ]")
    assert losses(plain, LOSES) == ["always", "ranges or kernels"]
    colored = drawn(tmp_path / "colored", "main |[step ]", extra={"step": {"color": 0xFF0000}})
    assert losses(colored, LOSES) == ["always", "ranges or kernels", "colours"]


@pytest.mark.parametrize("name", [unit.id for unit in catalog.units("exporters.formats")])
def test_losses_name_what_a_report_has(name: str) -> None:
    for loss in catalog.find("exporters.formats", name).constant("LOSES"):
        for place in () if isinstance(loss, str) else loss[1:]:
            table, _, column = place.partition(".")
            assert table in TABLES, place
            assert not column or TABLES[table].column(column) is not None, place
