"""The pages that people read point at things that exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import wrap_markdown  # noqa: E402  # a script, in no package

GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
SECTIONS = ["What you need", "The command", "How to read it", "What next"]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing, f"{_name(page)} links to {missing}"


def test_the_readme_is_short() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 150, (
        "the README is for the first five minutes"
    )


def test_the_guides_are_few_and_short() -> None:
    assert len(GUIDES) <= 18, "merge guides; details belong to docs/explain"
    long = {_name(page): len(page.read_text(encoding="utf-8").splitlines()) for page in GUIDES}
    assert {name: lines for name, lines in long.items() if lines > 150} == {}


@pytest.mark.parametrize("page", GUIDES, ids=_name)
def test_a_guide_is_one_task(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    title, verb = text.splitlines()[0], r"# (Install|Record|Name|Find|See|Sum|Ask|Look|Open|View)\b"
    assert re.match(verb, title), f"{title!r} does not begin with what the reader wants to do"
    sections = re.findall(r"^## (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    assert [section for section in sections if section in SECTIONS] == SECTIONS
    assert sections[0] == SECTIONS[0]
    assert sections[-1] == SECTIONS[-1]


@pytest.mark.parametrize("page", GUIDES, ids=_name)
def test_a_guide_shows_a_command_with_its_output(page: Path) -> None:
    command = page.read_text(encoding="utf-8").partition("## The command")[2].partition("\n## ")[0]
    printed = [
        block
        for block in re.findall(r"^```(?:console|text)\n(.*?)^```", command, flags=re.DOTALL | re.MULTILINE)
        if re.search(r"^\$ .*\n(?!\$ ).+", block, flags=re.MULTILINE) or "$ warplens launch" in block
    ]
    assert printed or "![" in command, "no command with what it prints, and no picture"


@pytest.mark.parametrize("page", DECISIONS, ids=_name)
def test_a_decision_is_one_page_of_three_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 60, "move measurements and details to docs/dev"
    assert re.match(rf"# {int(page.name[:4])}\. ", text), "the title begins with the number of the file"


@pytest.mark.parametrize("page", wrap_markdown.pages(), ids=_name)
def test_prose_wraps_at_100_columns(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == wrap_markdown.wrapped(text), "run: make format"
