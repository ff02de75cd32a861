"""The catalog: units are found and described from their source alone."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

import pytest

from warplens import catalog
from warplens.catalog import Unit, UnitFamily
from warplens.errors import UsageError

SOURCE = '''"""Counts apples.

More about it.

## What it shows
Apples,
per tree.

## Traps
### Pears
Not apples.
"""
import a_package_that_is_absent

SUFFIX = ".txt"
LOSES: tuple[str, ...] = ("colour", "taste")
COMPUTED = a_package_that_is_absent.number()

def table(report: Report, *, rows: int = 10, by: str | None = None, unit: Unit) -> Table:
    """Count.

    Args:
        rows: how many rows to show,
            at most.
        by (str): what to group by.
    """
'''


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    path = tmp_path / "apples.py"
    path.write_text(SOURCE)
    return Unit("apples", UnitFamily("stats.tables", "stat", "table"), path)


def test_a_unit_is_described_without_importing_it(unit: Unit) -> None:
    assert unit.summary == "Counts apples."
    assert unit.body == "More about it."
    assert unit.sections == {"What it shows": "Apples,\nper tree.", "Traps": "### Pears\nNot apples."}
    assert unit.module == "warplens.stats.tables.apples"


def test_options_are_the_keyword_only_parameters(unit: Unit) -> None:
    rows, by, kind = unit.options
    assert (rows.name, rows.annotation, rows.default, rows.value) == ("rows", "int", "10", 10)
    assert rows.text == "how many rows to show, at most."
    assert (by.annotation, by.default, by.value, by.text) == ("str | None", "None", None, "what to group by.")
    assert kind.required
    assert not by.required


def test_constants_are_literals(unit: Unit) -> None:
    assert unit.constant("SUFFIX") == ".txt"
    assert unit.constant("LOSES") == ("colour", "taste")
    assert unit.constant("COMPUTED") is None
    assert unit.constant("MISSING") is None


def test_a_family_lists_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "stats" / "tables"
    folder.mkdir(parents=True)
    for name in ("pears", "apples", "_shared", "__init__"):
        (folder / f"{name}.py").write_text(SOURCE)
    monkeypatch.setattr(catalog, "_ROOT", tmp_path)
    catalog._units.cache_clear()
    try:
        assert [unit.id for unit in catalog.units("stats.tables")] == ["apples", "pears"]
        assert catalog.units("rules.checks") == []
        assert catalog.find("stats.tables", "apples").id == "apples"
        with pytest.raises(UsageError, match=r"no stat 'aples'; did you mean apples\?"):
            catalog.find("stats.tables", "aples")
        with pytest.raises(UsageError, match=r"no stat 'zzz'; there are: apples, pears\."):
            catalog.find("stats.tables", "zzz")
        with pytest.raises(ModuleNotFoundError):
            Unit("not_there", catalog.family("stats.tables"), folder / "not_there.py").load()
    finally:
        catalog._units.cache_clear()


def test_an_unknown_family_is_a_programming_error() -> None:
    with pytest.raises(KeyError):
        catalog.units("no.family")


@pytest.mark.parametrize("family", catalog.FAMILIES)
def test_constants_are_those_of_the_parsed_source(family: str) -> None:
    for unit in catalog.units(family):
        for name, value in literals(unit.tree).items():
            assert unit.constant(name) == value, (unit.id, name)
        assert unit.constant("NO_SUCH_NAME") is None


def literals(tree: ast.Module) -> dict[str, object]:
    values: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, None)
                    with suppress(ValueError):
                        values[target.id] = ast.literal_eval(node.value)
    return values
