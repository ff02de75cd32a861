"""tools/python_headers.py: whose headers are taken for a wheel, and why others are not."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("python_headers")


def _plain(root: Path, minor: int) -> Path:
    """Headers as `make install` of CPython leaves them."""
    folder = root / f"python3.{minor}"
    folder.mkdir(parents=True)
    (folder / "Python.h").write_text("")
    (folder / "patchlevel.h").write_text(f"#define PY_MAJOR_VERSION 3\n#define PY_MINOR_VERSION {minor}\n")
    (folder / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n")
    return folder


def _debian(root: Path, minor: int, *machines: str) -> Path:
    """Headers as Debian's packages for these machines have them."""
    folder = _plain(root, minor)
    (folder / "pyconfig.h").write_text(f"#include <x86_64-linux-gnu/python3.{minor}/pyconfig.h>\n")
    for machine in machines:
        own = root / f"{machine}-linux-gnu" / folder.name
        own.mkdir(parents=True)
        (own / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n")
    return folder


def test_every_version_has_headers_or_a_reason(tool: ModuleType, tmp_path: Path) -> None:
    installed = {
        (3, 10): [tmp_path / "nothing", _plain(tmp_path / "a", 10)],
        (3, 11): [_plain(tmp_path / "b", 12)],
        (3, 12): [tmp_path],
    }
    headers, missing = tool.find("x86_64", "x86_64", {}, installed)
    assert [(one.version, one.machine) for one in headers] == [((3, 10), "x86_64")]
    assert missing.keys() == {(3, 11), (3, 12), (3, 13), (3, 14), (3, 15)}
    assert "Python 3.12, not 3.11" in missing[3, 11]
    assert "patchlevel.h cannot be read" in missing[3, 12]
    assert missing[3, 14] == "no such CPython was found here"


def test_headers_of_the_host_serve_another_machine_unless_they_are_split(
    tool: ModuleType, tmp_path: Path
) -> None:
    plain, split = _plain(tmp_path / "a", 10), _debian(tmp_path / "b", 11, "x86_64")
    both = _debian(tmp_path / "c", 12, "x86_64", "aarch64")
    headers, missing = tool.find("aarch64", "x86_64", {(3, 11): split}, {(3, 10): [plain], (3, 12): [both]})
    assert [(one.version, one.machine) for one in headers] == [((3, 10), "x86_64"), ((3, 12), "aarch64")]
    assert "lacks the part for aarch64" in missing[3, 11]
    assert headers[0].definition("aarch64") == f"cpython-310-aarch64-linux-gnu={plain}"
    assert headers[1].definition("aarch64") == f"cpython-312-aarch64-linux-gnu={both},{both.parent}"


def test_folders_that_are_handed_over_come_first_and_have_to_fit(tool: ModuleType, tmp_path: Path) -> None:
    folder = _plain(tmp_path, 14)
    own = tool.handed_over([f"3.14={folder}"])
    headers, _ = tool.find("x86_64", "x86_64", own, {(3, 14): [tmp_path / "elsewhere"]})
    assert [one.folders for one in headers] == [(folder,)]
    for words, complaint in (
        (f"3.13={folder}", "Python 3.14, not 3.13"),
        (f"3.14={tmp_path}", "no folder of Python's headers"),
    ):
        with pytest.raises(tool.BadHeaders, match=complaint):
            tool.find("x86_64", "x86_64", tool.handed_over([words]), {})
    with pytest.raises(tool.BadHeaders, match=r"write it as 3\.14="):
        tool.handed_over([str(folder)])


def test_this_python_is_among_those_that_are_asked(tool: ModuleType) -> None:
    pythons = importlib.import_module("pythons").pythons()
    assert tool.of_interpreters().keys() == pythons.keys()
