"""Wraps the prose of Markdown pages at 100 columns: `wrap_markdown.py [--check] [FILE…]`.

Only paragraphs and list items that have a longer line are filled anew. Tables, code, headings and
HTML stay as they are. A link or a code span that is longer than a line stays whole.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "src", "native", "web", "tests", "tools", "benchmarks", "examples")
WIDTH = 100
FENCE = re.compile(r"^\s*(```|~~~)")
# Lines that are no prose: tables, headings, HTML, rules, indented code, link definitions.
FIXED = re.compile(r"^(\s*\||#{1,6} |\s*<|\s*(-{3,}|\*{3,})\s*$| {4,}\S|\t|\[[^\]]+\]: )")
ITEM = re.compile(r"^(\s*(?:[-*+]|\d+\.)\s+|\s*> ?)")
# A word of a line: code spans and targets of links are not divided.
WORD = re.compile(r"(?:`+[^`]+`+|\]\([^)]*\)|[^\s`])+|`")
# A word that would begin a list, a heading, a table or a quotation at the begin of a line.
MARK = re.compile(r"^(?:[-*+>|]|#{1,6}|\d+[.)])$")


def fill(lines: list[str]) -> list[str]:
    """Return the lines of one paragraph or list item, filled to WIDTH."""
    item = ITEM.match(lines[0])
    lead = item[0] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    indent = lead if lead.strip() == ">" else " " * len(lead)
    text = " ".join(
        [lines[0][len(lead) :], *(line.strip().removeprefix(indent.strip()) for line in lines[1:])]
    )
    filled, line = [], lead
    for word in WORD.findall(text):
        fits = len(line) + 1 + len(word) <= WIDTH
        if line in {lead, indent}:
            line += word
        elif fits or MARK.match(word):
            line += f" {word}"
        else:
            filled.append(line)
            line = indent + word
    return [*filled, line]


def begins_item(line: str, paragraph: list[str]) -> bool:
    """Whether a line begins a list item. In a paragraph of prose only `1.` can, as in CommonMark."""
    item = ITEM.match(line)
    if item is None or not paragraph:
        return item is not None
    if item[0].strip() == ">":
        return paragraph[0][:1] != ">"
    number = item[0].strip().rstrip(".")
    return not number.isdigit() or number == "1" or ITEM.match(paragraph[0]) is not None


def wrapped(text: str) -> str:
    """Return the page with its long paragraphs filled."""
    result: list[str] = []
    paragraph: list[str] = []

    def end() -> None:
        result.extend(fill(paragraph) if any(len(line) > WIDTH for line in paragraph) else paragraph)
        paragraph.clear()

    fenced = False
    for line in text.splitlines():
        fence = FENCE.match(line) is not None
        continues = bool(paragraph) and ITEM.match(paragraph[0]) is not None and line.startswith("  ")
        if fence or fenced or not line.strip() or (FIXED.match(line) and not continues):
            end()
            result.append(line)
            fenced ^= fence
            continue
        if begins_item(line, paragraph):
            end()
        paragraph.append(line)
    end()
    return "\n".join(result) + "\n"


def pages() -> list[Path]:
    """Return the pages that people read. A source archive has no git, so the folders are walked."""
    below = [page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md"))]
    return [*sorted(ROOT.glob("*.md")), *(page for page in below if "node_modules" not in page.parts)]


def main(words: list[str]) -> int:
    """Wrap the pages, or with `--check` print those that are not wrapped; return the exit status."""
    check = "--check" in words
    chosen = [Path(word) for word in words if not word.startswith("--")] or pages()
    late = []
    for path in chosen:
        text = path.read_text(encoding="utf-8")
        if wrapped(text) != text:
            late.append(path)
            if not check:
                path.write_text(wrapped(text), encoding="utf-8")
    if check and late:
        print(*(f"{path.relative_to(ROOT)} has lines beyond {WIDTH} columns" for path in late), sep="\n")
        print("run: make format")
    return 1 if check and late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
