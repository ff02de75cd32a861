"""What holds for every module: a docstring, a reasonable length, and a place in the layers."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "warplens"
MAX_LINES = 700
SOURCES = [
    path
    for folder, kinds in (
        ("src", "*.py"),
        ("tests", "*.py"),
        ("benchmarks", "*.py"),
        ("tools", "*.py"),
        ("native", "*.[ch]*"),
    )
    for path in sorted((ROOT / folder).rglob(kinds))
    if path.suffix in {".py", ".c", ".h", ".cpp", ".hpp", ".cuh"} and "__pycache__" not in path.parts
]
MODULES = [path for path in SOURCES if path.suffix == ".py"]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _beginning(text: str) -> ast.Module:
    """What stands before and in the first text in triple quotes; all of a module would take seconds for all of them."""
    begin = text.find('"""')
    try:
        return ast.parse(text[: text.find('"""', begin + 3) + 3])
    except SyntaxError:  # it is further down, in code
        return ast.parse("")


def test_a_module_says_what_it_is_in_one_line() -> None:
    """All in one test: a thousand would take longer."""
    found = {}
    for path in MODULES:
        doc = ast.get_docstring(_beginning(path.read_text(encoding="utf-8"))) or ""
        first, _, rest = doc.partition("\n")
        if not first.strip():
            found[_name(path)] = "has no module docstring"
        elif rest.partition("\n")[0].strip():
            found[_name(path)] = "starts with more than one line of its own"
    assert not found


def test_every_native_file_begins_with_what_is_in_it() -> None:
    silent = [
        _name(path)
        for path in SOURCES
        if path.suffix != ".py" and not path.read_text(encoding="utf-8").startswith(("// ", "/* "))
    ]
    assert not silent, "write one line at the top"


def test_every_folder_of_the_package_is_a_package() -> None:
    for folder in sorted(path for path in PACKAGE.rglob("*") if path.is_dir()):
        if any(folder.glob("*.py")):
            assert (folder / "__init__.py").is_file(), f"{_name(folder)} has modules but no __init__.py"


def test_no_file_is_too_long() -> None:
    long = {
        _name(path): lines
        for path in SOURCES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert not long, f"split by idea, not by length (at most {MAX_LINES} lines): {long}"


def test_no_file_is_a_drawer() -> None:
    drawers = {"utils", "util", "common", "misc", "helpers", "config", "configs"}
    found = [_name(path) for path in SOURCES if path.stem in drawers and PACKAGE in path.parents]
    assert not found, f"name the thing instead: {found}"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs tomllib")
def test_every_part_of_the_package_has_its_layer_and_its_half() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    contracts = {contract["id"]: contract for contract in settings}
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    parts -= {"__init__", "__main__", "_version"}
    layered = set(re.findall(r"\w+", " ".join(contracts["flow"]["layers"])))
    assert parts <= layered, f"no layer yet: {sorted(parts - layered)}"
    target = {name.removeprefix("warplens.") for name in contracts["light-target"]["source_modules"]}
    reader = {name.removeprefix("warplens.") for name in contracts["light-reader"]["source_modules"]}
    wings = {"torch"}
    assert parts - wings <= target | reader, f"in neither half: {sorted(parts - wings - target - reader)}"
    apart = {name.removeprefix("warplens.") for name in contracts["two-halves"]["source_modules"]}
    assert reader - {"cli", "testing"} == apart, "two-halves and light-reader name the same packages"
