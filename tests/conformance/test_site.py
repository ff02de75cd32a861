"""The documentation site shows every page and makes one for each unit; mkdocs.yml names no page that is missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from warplens import catalog
from warplens.model.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import reference_pages  # noqa: E402  # a script beside tools/docs_site.py, in no package

# What tools/docs_site.py adds to the pages of docs/.
ADDED = {
    "index.md",
    "contents.md",
    "live.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
}
PAGES = reference_pages.pages()
SHOWN = {
    "tables": list(TABLES),
    "cli": [unit.id.replace("_", "-") for unit in catalog.units("cli.commands")],
    **{
        page: [unit.id for unit in catalog.units(family)]
        for page, family in {
            "stats": "stats.tables",
            "rules": "rules.checks",
            "exporters": "exporters.formats",
            "importers": "importers.formats",
            "intrakernel": "intrakernel.dsl",
        }.items()
    },
}


def test_the_navigation_names_every_page_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = re.findall(r"(\S+\.md)$", text, flags=re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == (pages - {"README.md"}) | ADDED | {f"reference/{name}.md" for name in PAGES}


@pytest.mark.parametrize("name", SHOWN)
def test_a_reference_page_describes_each_unit(name: str) -> None:
    headings = re.findall(r"^## (\S+)$", PAGES[name], flags=re.MULTILINE)
    assert [heading for heading in headings if heading in SHOWN[name]] == SHOWN[name]
    assert len(PAGES[name]) > 200 * len(SHOWN[name]), "a heading without its text"


def test_a_reference_page_has_the_options_of_its_units() -> None:
    for name, family in (
        ("stats", "stats.tables"),
        ("exporters", "exporters.formats"),
        ("rules", "rules.checks"),
    ):
        for unit in catalog.units(family):
            part = PAGES[name].partition(f"## {unit.id}\n")[2].partition("\n## ")[0]
            assert all(f"| `{option.name}` |" in part for option in unit.options)


def test_links_of_the_reference_pages_lead_somewhere() -> None:
    for name, text in PAGES.items():
        targets = [
            target
            for target in re.findall(
                r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            )
            if "://" not in target
        ]
        missing = [
            target for target in targets if not (ROOT / "docs" / "reference" / target).resolve().is_file()
        ]
        assert not missing, f"reference/{name}.md links to {missing}"
