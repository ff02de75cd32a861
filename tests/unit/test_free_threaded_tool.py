"""tools/free_threaded.py takes the newest source that an archive has, keeps a whole build, and says what it lacks.

The archive is a folder, and its CPython a few lines of shell: a real one takes ten minutes.
"""

from __future__ import annotations

import importlib
import io
import shutil
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.optional_dependencies import ROOT

CONFIGURE = """#!/bin/sh
to='$(DESTDIR)'${2#--prefix=}/bin
printf 'all:\\ninstall:\\n\\tmkdir -p %s\\n\\tcp python %s/python3.14t\\n' "$to" "$to" >Makefile
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    module = importlib.import_module("free_threaded")
    if not Path(module.HELPER).exists() or None in (shutil.which("gcc"), shutil.which("xz")):
        pytest.skip("fetching needs apt and xz, building a compiler")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "KEPT", tmp_path / "build" / "pythons")
    monkeypatch.setattr(module, "FOLDER", tmp_path / "build" / "free-threaded")
    monkeypatch.setattr(module, "HEADERS", {"stdio.h": "libc6-dev"})
    monkeypatch.setattr(module, "LAST_PATCH", 11)
    monkeypatch.setattr(module.unstable, "mirror", lambda: f"file:{tmp_path}/debian/")
    return module


def archive(folder: Path, release: str, python: str) -> None:
    minor = ".".join(release.split(".")[:2])
    pool = folder / "debian" / "pool" / "main" / "p" / f"python{minor}"
    pool.mkdir(parents=True, exist_ok=True)
    with tarfile.open(pool / f"python{minor}_{release}.orig.tar.xz", "w:xz") as packed:
        for name, text in (("configure", CONFIGURE), ("python", python)):
            member = tarfile.TarInfo(f"Python-{release}/{name}")
            member.mode, member.size = 0o755, len(text)
            packed.addfile(member, io.BytesIO(text.encode()))


def test_the_newest_is_built_once_and_kept(tool: ModuleType, tmp_path: Path) -> None:
    archive(tmp_path, "3.14.9", "#!/bin/sh\nexit 1\n")
    archive(tmp_path, "3.14.10", "#!/bin/sh\necho 3.14.10\n")
    python = tool.build("3.14t")
    assert python == tmp_path / "build" / "pythons" / "3.14t" / "bin" / "python3.14t"
    assert python.read_text() == "#!/bin/sh\necho 3.14.10\n"
    assert [path.name for path in tool.FOLDER.iterdir()] == ["3.14t.log"]
    shutil.rmtree(tmp_path / "debian")
    assert tool.build("3.14t") == python


def test_a_candidate_is_older_than_the_release(tool: ModuleType, tmp_path: Path) -> None:
    for release in ("3.15.0~rc2", "3.15.0~rc1"):
        archive(tmp_path, release, "")
    assert tool.fetch("3.15").name == "python3.15_3.15.0~rc2.orig.tar.xz"
    archive(tmp_path, "3.15.0", "")
    assert tool.fetch("3.15").name == "python3.15_3.15.0.orig.tar.xz"


def test_an_incomplete_python_is_not_kept(tool: ModuleType, tmp_path: Path) -> None:
    archive(tmp_path, "3.14.2", "#!/bin/sh\necho no module named ssl; exit 1\n")
    with pytest.raises(
        tool.unstable.Lacking, match=r"(?s)python3.14t of python3.14_3.14.2.*no module named ssl"
    ):
        tool.build("3.14t")
    assert not tool.KEPT.exists()


def test_missing_headers_are_named(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "HEADERS", {"stdio.h": "libc6-dev", "no/such.h": "libno-dev"})
    assert tool.make() == 0
    assert (
        "no CPython 3.14t: headers are not there (Debian: apt-get install libno-dev)"
        in capsys.readouterr().err
    )
    monkeypatch.setattr(tool, "HEADERS", {})
    with pytest.raises(tool.unstable.Lacking, match=r"the archive has no source of CPython 3\.15"):
        tool.build("3.15t")
