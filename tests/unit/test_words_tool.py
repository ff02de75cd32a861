"""The check of prose reports each forbidden pattern with its line, and accepts plain sentences."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_words.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_words", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("told", "# The agent is told of a new window."),
        ("told", "# Notes that were never told."),
        ("said", "Where the disk is full, that is said on stderr."),
        ("so many", 'help="At most so many threads."'),
        ("own", "Each rank has a report of its own."),
        ("whoever", "// Whoever opens a window moves the gate."),
        ("who", "It ends alone. Who waits for it gets an error."),
        ("who", "# who waits longer counts twice"),
        ("what … for", "The bytes, or what was asked for."),
        ("raises … where", "Return the rows. Raises MissingData where there are none."),
        ("1 things", 'print("1 files written")'),
    ],
)
def test_reports_a_forbidden_pattern(tool: ModuleType, kind: str, text: str) -> None:
    (problem,) = tool.complaints("some/file.py", f"first line\n{text}\n")
    assert problem.startswith("some/file.py:2: ")
    assert f"({kind})" in problem


@pytest.mark.parametrize(
    "text",
    [
        "The agent gets the control page from the launcher.",
        "Each rank writes a separate report, with its own clock.",
        "It reads the folder of that process instead of its own.",
        "Somebody who opens the page needs the token.",
        "Who calls this function?",
        "Return the rows. Raises MissingData if there are none.",
        "In 11 files, 2.1 files on average.",
        "The table shows what each stream waits for.",
    ],
)
def test_accepts_plain_sentences(tool: ModuleType, text: str) -> None:
    assert tool.complaints("some/file.py", text) == []


@pytest.mark.parametrize(
    "text",
    [
        "# a buffer of its\n    # own, which\n",
        "//! a buffer of its\n//! own, which\n",
        " * a buffer of its\n * own, which\n",
        '"a buffer of its "\n    "own, which"\n',
    ],
)
def test_follows_a_sentence_to_the_next_line(tool: ModuleType, text: str) -> None:
    (problem,) = tool.complaints("some/file.py", text)
    assert problem.startswith('some/file.py:1: "')
    assert "(own)" in problem


def test_reads_the_text_of_every_half(tool: ModuleType) -> None:
    names = tool.files()
    assert {"README.md", "src/warplens/errors.py", "native/preload/begin.c", "web/src/app/boot.ts"} <= set(
        names
    )
    assert not set(names) & set(tool.ALLOWED)
    assert all(not name.startswith("tests/") for name in names)


def test_reads_a_source_archive_without_what_a_build_made(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "src/warplens/errors.py",
        "src/warplens/viewer/_bundle/app.css",
        "src/notes.bin",
        "README.md",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n", encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.files() == ["README.md", "src/warplens/errors.py"]


def test_fails_with_a_planted_sentence(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.md").write_text("Whoever reads this stops.\n", encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "files", lambda: ["page.md"])
    assert tool.main() == 1
    assert 'page.md:1: "Whoever" (whoever)' in capsys.readouterr().out
