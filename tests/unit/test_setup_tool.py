"""tools/setup.py installs what the lock file pins, and goes on with a warning where a version has no wheel for this Python."""

from __future__ import annotations

import importlib
import sys
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.require("pip")]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool with a lock file of its own, and with a folder of wheels instead of an index."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    tool = importlib.import_module("setup")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "LOCK", tmp_path / "requirements.lock")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    (tmp_path / "wheels").mkdir()
    for name, version in (("held", "1.0"), ("held", "2.0"), ("moved", "1.5")):
        _wheel(tmp_path / "wheels", name, version)
    return tool


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment's interpreter."""
    folder = tmp_path_factory.mktemp("made") / "environment"
    venv.EnvBuilder(with_pip=True).create(folder)
    return folder / "bin" / "python"


@pytest.fixture
def python(environment: Path, setup: ModuleType) -> Path:
    """The same without what another test put there."""
    setup.run(environment, "-m", "pip", "uninstall", "--quiet", "--yes", "held", "moved")
    return environment


def _wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as packed:
        packed.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        packed.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        packed.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr(f"{info}/RECORD", "")


def test_the_pinned_version_is_installed_though_a_newer_one_is_there(setup: ModuleType, python: Path) -> None:
    setup.LOCK.write_text('# a comment\nheld==1.0\nabsent==1 ; python_version < "3"\n')
    assert setup.install(python) == {}
    assert setup.run(python, "-c", "import held; print(held.VERSION)") == "1.0\n"


def test_a_version_without_a_wheel_is_replaced_with_a_warning(
    setup: ModuleType, python: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    setup.LOCK.write_text("gone==1.0\nheld==1.0\nmoved==9.0\n")
    monkeypatch.setattr(setup, "needs", lambda python: ["moved>=1", "gone>=1"])
    assert setup.install(python) == {
        "gone": "left out, as pip could not build it either",
        "moved": "the newest version that has one",
    }
    assert setup.run(python, "-c", "import held, moved; print(held.VERSION, moved.VERSION)") == "1.0 1.5\n"
    warned = capfd.readouterr().err
    assert "moved==9.0 has no wheel for this Python: the newest version that has one" in warned


def test_packages_that_are_not_pinned_are_removed(setup: ModuleType, python: Path) -> None:
    setup.LOCK.write_text("held==1.0\nmoved==1.5\n")
    setup.install(python)
    setup.LOCK.write_text("held==2.0\npip==0\n")
    setup.remove_others(python, {})
    there = setup.run(python, "-m", "pip", "list", "--format=freeze").split()
    assert [name.partition("==")[0] for name in there] == ["held", "pip"]


def test_another_failure_of_pip_ends_the_set_up(setup: ModuleType, python: Path) -> None:
    setup.LOCK.write_text("not a requirement\n")
    with pytest.raises(SystemExit, match="set-up failed"):
        setup.install(python)


def test_names_are_compared_in_one_spelling(setup: ModuleType) -> None:
    assert setup.name_of("Backports.tarfile>=1 ; python_version < '3.12'") == "backports-tarfile"
    assert sys.modules["setup"] is setup
