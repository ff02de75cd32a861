"""What the README and the guides tell people to type works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.programs.launching import environment
from warplens.cli.group import commands

ROOT = Path(__file__).resolve().parents[3]
ASKING = ("analyze", "diff", "export", "info", "query", "stats", "timeline")
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
# Pages beside the guides: those that have commands or programs.
EXPLAINED = [
    page
    for page in sorted((ROOT / "docs" / "explain").glob("*.md"))
    if re.search(r"^```(console|python)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
]

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(900)]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the examples in it, where `python` and `warplens` are ours."""
    for example in ("intrakernel_pipeline/pipeline.py", "intrakernel_pipeline/pipeline.cu", "cpu_mistakes/gil_hog.py", "orders.py", "shapes.py"):
        shutil.copy(ROOT / "examples" / example, tmp_path)
    text = (ROOT / "examples" / "train.py").read_text(encoding="utf-8")
    for much, less in (("default=6)", "default=2)"), ("TRAIN, TEST, BATCH, BLOCK = 5120, 2048,", "TRAIN, TEST, BATCH, BLOCK = 2560, 512,")):
        assert much in text
        text = text.replace(much, less)  # epochs and steps, each like the one before
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    for name, command in (("python", ""), ("warplens", "-m warplens")):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n')
        path.chmod(0o755)
    return tmp_path


def type_in(command: str, place: Path) -> str:
    """Run a line in a shell; return what it printed."""
    env = environment(PATH=f"{place / 'bin'}:{os.environ['PATH']}")
    done = subprocess.run(["sh", "-c", command], cwd=place, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def ask(command: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a command that asks a report, without starting one more Python for it; whether it is one."""
    words = shlex.split(command, comments=True)
    if words[:1] != ["warplens"] or words[1] not in ASKING or re.search(r"[|&;<>$*]", command):
        return False
    with monkeypatch.context() as moved:
        moved.chdir(place)
        done = CliRunner().invoke(commands, words[1:])
    assert done.exit_code == 0, f"$ {command}\n{done.output}"
    return True


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], None]:
    """Runs the recording that a guide begins with; where another began with the same, its files are taken."""
    made: dict[str, Path] = {}

    def record(command: str, place: Path) -> None:
        if command in made:
            shutil.copytree(made[command], place, dirs_exist_ok=True)
        else:
            type_in(command, place)
            made[command] = tmp_path_factory.mktemp("recorded") / "place"
            shutil.copytree(place, made[command])

    return record


@pytest.mark.parametrize("page", [*GUIDES, *EXPLAINED], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_commands_and_programs_of_a_guide_run(
    page: Path, place: Path, recorded: Callable[[str, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = re.findall(r"^\$ (.+)$", "".join(blocks(page, "console")), flags=re.MULTILINE)
    programs = blocks(page, "python")
    assert typed or programs
    for number, command in enumerate(typed):
        if number == 0 and command.startswith("warplens profile "):
            recorded(command, place)
        elif not ask(command, place, monkeypatch):
            type_in(command, place)
    for program in programs:
        (place / "block.py").write_text(program, encoding="utf-8")
        type_in("python block.py", place)


def test_the_ten_lines_of_the_readme_give_what_is_below_them(place: Path) -> None:
    readme = ROOT / "README.md"
    (program,), (console, advice) = blocks(readme, "python"), blocks(readme, "console")
    (place / "steps.py").write_text(program, encoding="utf-8")
    (record,) = re.findall(r"`(warplens profile [^`]*steps\.py)`", readme.read_text(encoding="utf-8"))
    type_in(record, place)
    command, _, shown = console.removeprefix("$ ").partition("\n")

    def steady(table: str) -> list[list[str]]:
        """The words of each line that do not change from run to run: no times."""
        return [[word for word in line.split() if not re.fullmatch(r"[\d.,]*\.\d+|-+", word)] for line in table.strip().splitlines()]

    assert steady(type_in(command, place)) == steady(shown)

    def wording(text: str) -> str:
        """A text without its figures and line ends."""
        return " ".join(re.sub(r"\d[\d.,]*", "#", text).split())

    command, _, shown = advice.removeprefix("$ ").partition("\n")
    assert wording(shown) in wording(type_in(command, place))
