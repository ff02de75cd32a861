"""The pages that people read point at things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing, f"{_name(page)} links to {missing}"


def test_architecture_starts_at_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`.*?) \| .+? \| (.+?) \|$", text, flags=re.MULTILINE)
    assert len(rows) > 10
    for folders, files in rows:
        bases = [ROOT / folder.replace("…", "src/warplens") for folder in re.findall(r"`([^`]+)`", folders)]
        for file in re.findall(r"`([^`]+)`", files):
            places = [*(base / file for base in bases), ROOT / file, ROOT / "src" / "warplens" / file]
            assert any(place.is_file() for place in places), (
                f"ARCHITECTURE.md says to start at {file}, which is not in {folders}"
            )


def test_the_readme_is_short() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 150, (
        "the README is for the first five minutes"
    )
