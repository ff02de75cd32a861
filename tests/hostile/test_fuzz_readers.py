"""Some seconds of `make torture ARGS=--readers`: the same rounds each time, as many as fit; and what makes a round fail."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.readers import asking, canary, rounds, templates
from tests.hostile.readers.asking import Wrong
from tests.hostile.readers.suite import Suite
from tests.support.programs.launching import SRC
from tests.support.thorough import THOROUGH

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.require("native")
def test_readers_answer_or_refuse_whatever_they_are_given(tmp_path: Path) -> None:
    seconds = "600" if THOROUGH else "8"
    words = ["--readers", "--rounds", "1000000", "--seconds", seconds, "--seed", "77", "--jobs", "2"]
    environment = os.environ | {"PYTHONPATH": f"{SRC}{os.pathsep}{ROOT}", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "tests.torture", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    templates.make(folder)
    return folder


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a round sets for itself is as before afterwards."""
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "COLUMNS"):
        monkeypatch.setenv(name, os.environ.get(name, "/"))
    monkeypatch.chdir(Path.cwd())


def play(made: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[[list[str]], int]) -> None:
    monkeypatch.setattr(asking, "run", run)
    monkeypatch.setitem(rounds.KINDS, "manifest", (rounds.questions, 1, 0.0))
    rounds.play(made, folder / "round", "manifest", random.Random(1))


@pytest.mark.parametrize(
    ("said", "code", "wrong"),
    [
        ("warplens: error: it is broken", 1, None),
        ("", 0, None),
        ("", 1, "said nothing"),
        ("Traceback (most recent call last):", 1, "said Traceback"),
        ("warplens: error: there is too little memory for this", 1, "more memory than it may"),
        ("x", 134, "ended with 134"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_how_a_command_may_end(
    said: str, code: int, wrong: str | None, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: list[str]) -> int:
        sys.stderr.write(said)
        return code

    if wrong is None:
        play(made, tmp_path, monkeypatch, run)
        return
    with pytest.raises(Wrong, match=wrong):
        play(made, tmp_path, monkeypatch, run)


@pytest.mark.usefixtures("kept")
def test_an_error_that_no_command_tells_is_wrong(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: list[str]) -> int:
        raise KeyError("x")

    with pytest.raises(Wrong, match="ended in KeyError"):
        play(made, tmp_path, monkeypatch, run)


@pytest.mark.parametrize(
    "change",
    [
        lambda outside: (outside / "thesis.txt").unlink(missing_ok=True),
        lambda outside: (outside / "spool" / "one" / "new").touch(),
        lambda outside: (outside / "control").write_text("other"),
        lambda outside: (outside / "control").chmod(0o777),
        lambda outside: (outside.parent / "report.warplens.bak").mkdir(exist_ok=True),
    ],
)
@pytest.mark.usefixtures("kept")
def test_whatever_changes_beside_a_report_is_wrong(
    change: Callable[[Path], object], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(words: list[str]) -> int:
        change(Path.cwd())
        return 0

    with pytest.raises(Wrong, match="beside it"):
        play(made, tmp_path, monkeypatch, run)


def test_the_same_seed_gives_the_same_rounds(made: Path, tmp_path: Path) -> None:
    def damaged(folder: Path, kind: str) -> dict[str, object]:
        name, chance = rounds.choose(5, 1, [kind])
        path = rounds.KINDS[name][0](rounds.Scene(made, folder, chance))
        return (
            {name: facts[-1] for name, facts in canary.state(path).items()}
            if path.is_dir()
            else {"": path.read_bytes()}
        )

    for kind in ("manifest", "tables", "index", "spool", "imports"):
        first = damaged(tmp_path / kind, kind)
        shutil.rmtree(tmp_path / kind)
        assert damaged(tmp_path / kind, kind) == first


@pytest.mark.require("native")
def test_a_worker_that_dies_is_a_failed_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.hostile.readers.suite.ROUND_S", 0.001)
    told: list[str] = []
    suite = Suite(1, tmp_path, ["spool"], told.append)
    suite.run([1, 2], 300.0, 1)
    assert [failure.partition(":")[0] for failure in suite.failures] == ["round 1", "round 2"]
    assert "Timeout" in "".join(told)
