"""tools/run_tests.py: what fails once is told as unsteady, what fails twice or often fails the run."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.thorough import few

ROOT = Path(__file__).resolve().parents[3]
Toy = Callable[..., tuple[int, str]]

_ONCE = """
import pathlib
def fails_once(name):
    seen = pathlib.Path(__file__).with_name(name)
    if not seen.exists():
        seen.touch()
        raise RuntimeError(name)
"""


@pytest.fixture
def tool() -> ModuleType:
    """The tool as a module, with a part `toy`."""
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools" / "run_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def toy(tmp_path: Path, tool: ModuleType, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Run tests of this text; the exit status, and what was printed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a second less each time
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(text: str, *words: str) -> tuple[int, str]:
        (tmp_path / "test_toy.py").write_text(_ONCE + text)
        tool.PARTS["toy"] = ["-p", "xdist.plugin", "-n", "0", "-c", str(tmp_path / "pytest.ini"), str(tmp_path)]
        return tool.main(["toy", "--", *words]), capfd.readouterr().out

    return run


@pytest.mark.parametrize("workers", few(["0", "2"]))
def test_a_test_that_fails_once_is_named_and_the_run_passes(toy: Toy, workers: str) -> None:
    text = """
def test_good(): pass
def test_a(): fails_once("a")
class TestIn:
    def test_b(self, request): request.addfinalizer(lambda: fails_once("b"))
"""
    status, out = toy(text, "-n", workers)
    assert status == 0
    assert "2 failed; once more, alone" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("unsteady: ")] == [
        "test_toy.py::TestIn::test_b",
        "test_toy.py::test_a",
    ]
    status, out = toy(text)
    assert status == 0
    assert "once more" not in out
    assert "unsteady" not in out


def test_a_test_that_fails_twice_fails_the_run(toy: Toy) -> None:
    status, out = toy('def test_a(): fails_once("a")\ndef test_bad(): assert 0, "bad"\n')
    assert status == 1
    assert "once more" in out
    assert "1 failed, 1 passed" in out
    assert "unsteady" not in out


def test_a_test_that_is_skipped_the_second_time_has_not_passed(toy: Toy) -> None:
    text = """
import pytest
def test_a():
    try: fails_once("a")
    except RuntimeError: raise
    pytest.skip("not now")
"""
    assert toy(text)[0] == 1


def test_six_failures_are_no_chance(toy: Toy) -> None:
    text = "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_a(n): fails_once(str(n))\n"
    status, out = toy(text)
    assert status == 1
    assert "6 failed" in out
    assert "once more" not in out


def test_a_file_that_cannot_be_read_fails_at_once(toy: Toy) -> None:
    status, out = toy('fails_once("import")\ndef test_a(): pass\n')
    assert status not in (0, 5)
    assert "once more" not in out


def test_no_test_is_an_error(toy: Toy) -> None:
    assert toy("def test_a(): pass\n", "-k", "nothing")[0] == 5


@pytest.mark.parametrize(
    ("statuses", "words", "expected", "begun"),
    [
        ((0, 0), (), 0, 2),
        ((1, 0), (), 1, 1),
        ((0, 1), (), 1, 2),
        ((2, 0), ("-k", "x"), 2, 1),
        ((5, 0), (), 5, 1),
        ((0, 5), (), 5, 2),
        ((5, 0), ("-k", "x"), 0, 2),
        ((0, 5), ("-k", "x"), 0, 2),
        ((5, 5), ("-k", "x"), 5, 2),
        ((5, 1), ("-k", "x"), 1, 2),
    ],
)
def test_the_status_of_two_parts(
    tool: ModuleType, statuses: tuple[int, int], words: tuple[str, ...], expected: int, begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(statuses)
    monkeypatch.setattr(tool, "run", lambda _: (left.pop(0), []))
    assert tool.main(["unit", "integration", "--", *words]) == expected
    assert len(left) == 2 - begun


def test_the_words_are_checked() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "run_tests.py", "units"], capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.startswith("usage: run_tests.py check | unit | integration | recording | all-unit | all-integration ...")
