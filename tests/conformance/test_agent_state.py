"""The map of the agent's global state has a line for each file with such state, and names what exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dev" / "agent-state.md").read_text(encoding="utf-8")
# Variables of files: `std::atomic<bool> g_on{false};`, `__thread Lane *t_lane = nullptr;`. Tables for CPython never change.
STATE = re.compile(
    r"^(?!extern|constexpr|using|return|//|\s|MethodDef|TypeSlot|Member)[\w:<>,*&\[\] ()]*?[ *&>]([gt]_[a-z]\w*)\s*(?:[\[;={]|__attr)",
    re.MULTILINE,
)


def _lines() -> dict[str, set[str]]:
    """The names that the map has for each file."""
    names: dict[str, set[str]] = {}
    for folder, part in re.findall(r"\| file below `(.+?)` \|(.*?)(?=\n\n|\Z)", PAGE, re.DOTALL):
        files: list[str] = []
        for first, state in re.findall(r"^\| (.*?) ?\| (.*?) \|", part, re.MULTILINE):
            files = re.findall(r"`([\w/.]+)`", first) or files
            for file in files:
                names.setdefault(f"{folder}/{file}", set()).update(re.findall(r"`([gt]_\w+)`", state))
    return names


def _state() -> dict[str, set[str]]:
    """The names of variables by file."""
    names = {}
    for folder in ("native/agent", "native/spool"):
        for path in sorted((ROOT / folder).rglob("*.[ch]*")):
            if variables := set(STATE.findall(path.read_text(encoding="utf-8"))):
                names[path.relative_to(ROOT).as_posix()] = variables
    return names


def test_each_file_with_state_has_a_line() -> None:
    assert _state().keys() - _lines().keys() == set(), "say in docs/dev/agent-state.md what it holds"


def test_the_map_names_what_exists() -> None:
    lines, state = _lines(), _state()
    assert len(lines) > 40
    assert lines.keys() - state.keys() == set(), "these files have no state any more"
    for group in {frozenset(names) for names in lines.values()}:
        files = [file for file, names in lines.items() if names == group]
        assert group <= set().union(*(state[file] for file in files)), (
            f"{files} do not have all of {sorted(group)}"
        )
        assert all(group & state[file] for file in files)
