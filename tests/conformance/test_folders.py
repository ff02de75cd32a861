"""Folders: at most 25 files side by side, each on the map of ARCHITECTURE.md, and every file that the map names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 25
KINDS = {
    ".py",
    ".pyi",
    ".c",
    ".h",
    ".cpp",
    ".cuh",
    ".cu",
    ".inc",
    ".map",
    ".in",
    ".txt",
    ".ts",
    ".tsx",
    ".css",
}
# Folders where each file is one unit of a family, so that a reader looks for a name and not for a place.
UNITS = {"src/warplens/stats/tables", "src/warplens/rules/checks"}
ON_THE_MAP = ("src/warplens", "native", "web/src")
LEVEL = 4  # columns by which the map indents a level


def _folders(*tops: str) -> dict[str, list[Path]]:
    """Source files by folder; what is built or belongs to others is left out."""
    folders: dict[str, list[Path]] = {}
    for top in tops:
        for path in sorted((ROOT / top).rglob("*")):
            name = path.parent.relative_to(ROOT).as_posix()
            if path.suffix in KINDS and not re.search(
                r"(^|/)(__pycache__|_bundle|_lib|golden|\..*)(/|$)", name
            ):
                folders.setdefault(name, []).append(path)
    return folders


def test_few_files_lie_side_by_side() -> None:
    folders = _folders("src", "native", "web/src", "tests")
    full = {name: len(files) for name, files in folders.items() if len(files) > MOST and name not in UNITS}
    assert not full, f"make folders by subject (at most {MOST} files): {full}"


def _map() -> tuple[set[str], set[str]]:
    """The folders that the map names, and the files that it recommends, by path below the checkout."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("\n## Map\n")[1].split("```")[1]
    folders, files, above = set(), set(), [""]
    for line in filter(None, text.split("\n")):
        match = re.match(r"([│├└─ ]*)(\S.*)", line)
        assert match, line
        level = len(match[1]) // LEVEL
        names = re.match(r"(?:[\w/]+/(?:, |(?=\s|$)))+", match[2])
        assert names, f"a line of the map begins with a folder: {line}"
        here = [above[level] + name.strip(" /") for name in names[0].split(",")]
        above[level + 1 :] = [f"{here[0]}/"]
        folders.update(here)
        for word in re.findall(r"[\w./-]+\.(?:py|cpp|h|c|cuh|tsx?|md)\b", match[2][len(names[0]) :]):
            places = [f"{folder}/{word}" for folder in [*here, above[level].strip("/"), ""]]
            files.add(next((place for place in places if (ROOT / place.strip("/")).is_file()), f"? {word}"))
    return folders, files


def test_every_folder_is_on_the_map() -> None:
    named = _map()[0]
    real = set(_folders(*ON_THE_MAP))
    assert not (real - named), f"ARCHITECTURE.md, Map: a line for {sorted(real - named)}"


def test_the_map_names_what_exists() -> None:
    folders, files = _map()
    assert not [name for name in sorted(folders) if not (ROOT / name).is_dir()]
    assert not [name for name in sorted(files) if name.startswith("?")]
