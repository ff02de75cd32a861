"""Names: one class per name, no variable called `found`, and a glossary whose places exist."""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "warplens"

# Classes whose name stands in two or more modules. The list may only shrink: rename one class of a pair, then take the name out.
# A reason keeps a name for good; the others wait for somebody to rename them.
TWICE = {
    "Event": "intrakernel/nuggets.py has the names of the interface that it stands in for",
    "start_end_range": "nvtx/_absent.py has the names of the binding that it stands in for",
    "Report": "the facade's adds methods to that of report/",
    **dict.fromkeys(
        [
            "Asked",
            "Calls",
            "Counter",
            "GpuMetrics",
            "Kernels",
            "Note",
            "Piece",
            "Place",
            "Recording",
            "Samples",
            "Server",
            "Tally",
            "Window",
            "Wish",
            "_Notice",
            "_Object",
            "_Slices",
        ],
        "not renamed yet",
    ),
}

# How often Python code below src/ uses the name `found`. Say what a thing is instead: rows, match, entry. Lower this number when you can.
FOUND = 270


@cache
def _classes() -> dict[str, set[str]]:
    """The modules that define a class at any level, by its name."""
    modules: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(
            r"^ *class (\w+)[:(]", path.read_text(encoding="utf-8"), flags=re.MULTILINE
        ):  # parsing would take seconds
            modules[name].add(path.relative_to(PACKAGE).as_posix())
    return modules


def test_a_class_name_stands_in_one_module() -> None:
    twice = {name: sorted(modules) for name, modules in _classes().items() if len(modules) > 1}
    new = {name: modules for name, modules in twice.items() if name not in TWICE}
    assert not new, f"name these classes after what they are, so that a name says which is meant: {new}"


def test_the_list_of_repeated_class_names_only_shrinks() -> None:
    gone = sorted(name for name in TWICE if len(_classes().get(name, ())) < 2)
    assert not gone, f"these names are unique now; take them out of TWICE: {gone}"


def test_found_is_no_name() -> None:
    count = sum(_names(path).count("found") for path in sorted(PACKAGE.rglob("*.py")))
    assert count <= FOUND, f"{count} uses of the name `found`, {FOUND} are allowed: say what the thing is"


def _names(path: Path) -> list[str]:
    """All names in a file, without comments and texts; the file is tokenized only where the word occurs at all."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\bfound\b", text):
        return []
    return [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME
    ]


def _glossary() -> list[tuple[str, str, str]]:
    """Word, meaning and place of each row below the heading `Words`."""
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("\n## Words\n")[1]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", section, flags=re.MULTILINE)
    return [row for row in rows if row[0] != "word"]


def test_the_glossary_has_a_sentence_and_a_place_for_each_word() -> None:
    rows = _glossary()
    assert len(rows) >= 30
    words = [word.strip() for row in rows for word in row[0].split(",")]
    assert len(words) == len(set(words)), "a word has one row"
    for word, meaning, where in rows:
        assert meaning, f"{word} has no meaning"
        assert re.search(r"`[^`]+`", where), f"{word} names no folder, file or class"


def test_the_glossary_names_what_exists() -> None:
    for word, _, where in _glossary():
        path = None
        for item in re.findall(r"`([^`]+)`", where):
            if "/" in item:
                path = ROOT / item.replace("…", "src/warplens")
                assert path.exists(), f"ARCHITECTURE.md, {word}: there is no {item}"
            else:
                assert path is not None, f"ARCHITECTURE.md, {word}: {item} stands before its file"
                known = _classes().get(item, set())
                assert path.is_file(), f"ARCHITECTURE.md, {word}: name the file that has {item}"
                assert path.relative_to(PACKAGE).as_posix() in known, (
                    f"ARCHITECTURE.md, {word}: {path.name} has no class {item}"
                )
