"""tools/wrap_markdown.py fills paragraphs and list items, and leaves tables, code and links whole."""

from __future__ import annotations

import sys

import pytest

from tests.support.optional_dependencies import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import wrap_markdown  # a script, in no package

LONG = "word " * 30


@pytest.mark.parametrize(
    "text",
    [
        "short\nlines stay\nas they are\n",
        f"| a table | {LONG}|\n|---|---|\n",
        f"```\n{LONG}\n```\n",
        f"# {LONG}\n",
        "[" + "x" * 120 + "](" + "y" * 120 + ")\n",
    ],
)
def test_text_that_fits_stays(text: str) -> None:
    assert wrap_markdown.wrapped(text) == text


@pytest.mark.parametrize("lead", ["", "- ", "3. ", "> "])
def test_long_paragraphs_are_filled(lead: str) -> None:
    lines = wrap_markdown.wrapped(f"{lead}{LONG}").splitlines()
    assert max(map(len, lines)) <= wrap_markdown.WIDTH
    assert " ".join(lines).replace("> ", "").split() == [*lead.replace("> ", "").split(), *["word"] * 30]
    indent = lead if lead == "> " else " " * len(lead)
    assert all(line.startswith(f"{indent}word") for line in lines[1:])


def test_a_number_in_a_paragraph_begins_no_item() -> None:
    text = wrap_markdown.wrapped(f"{LONG}\n64. A sentence\n")
    assert "64. A sentence" in text.replace("\n", " ")
    assert not any(line.startswith("    ") for line in text.splitlines())


def test_code_spans_stay_whole_and_no_list_appears() -> None:
    text = wrap_markdown.wrapped("x" * 90 + " `a - b c d e f g h` - " + LONG)
    assert "`a - b c d e f g h`" in text
    assert not any(line.startswith("- ") for line in text.splitlines())


def test_twice_is_once() -> None:
    for page in wrap_markdown.pages():
        text = page.read_text(encoding="utf-8")
        assert wrap_markdown.wrapped(wrap_markdown.wrapped(text)) == wrap_markdown.wrapped(text)
