"""docs/performance.md and the pages below it are those that benchmarks/_pages.py writes from the results."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.optional_dependencies import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(name="pages")
def _pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("_pages", "_figures"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("_pages")


def test_the_headlines_are_those_of_the_results(pages: ModuleType, tmp_path: Path) -> None:
    results = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (BENCHMARKS / "results").glob("*.json")
    }
    named = {name for _, names in pages.PAGES.values() for name in names}
    assert results.keys() <= named, "a benchmark without a page: benchmarks/_figures.py"
    text = pages._headlines(dict(sorted(results.items())))
    assert text == (ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), "run: make docs"


def test_each_headline_is_a_row_of_its_benchmark(pages: ModuleType) -> None:
    figures = [one for group in pages.FIGURES.values() for one in group]
    assert 25 <= len(figures) <= 40, "the page has the figures that users care for, no more"
    for one in figures:
        rows = json.loads((BENCHMARKS / "results" / f"{one.benchmark}.json").read_text())["rows"]
        assert pages._line(one, rows).count("|") == 5


def test_a_figure_whose_row_is_gone_is_an_error(pages: ModuleType) -> None:
    gone = pages.Figure("a region", "intrakernel_cuda", "no such row")
    with pytest.raises(ValueError, match="intrakernel_cuda has no row 'no such row'"):
        pages._line(gone, [{"what": "a row", "peer": ""}])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.34, "ms", "12.3 ms"),
        (0.0123, "s", "12.3 ms"),
        (1_500, "ns", "1.5 us"),
        (7.2457, "%", "7.25 %"),
        (4_764.2, "MiB", "4,764 MiB"),
        (0.83, "s CPU", "830 ms CPU"),
        (13.2, "ns/range", "13.2 ns/range"),
        (0.0, "%", "0 %"),
    ],
)
def test_numbers_have_one_style(pages: ModuleType, value: float, unit: str, text: str) -> None:
    assert pages.quantity(value, unit) == text
