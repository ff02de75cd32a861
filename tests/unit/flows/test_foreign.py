"""Files of other tools open as if they were reports: imported once, and again only when they change."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import warplens
from tests.support.reports.nsys_export import Export, kernel
from warplens.cli.group import commands
from warplens.errors import NotAReport, ReportError
from warplens.flows import foreign

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "warplens" / "imports"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return written(tmp_path / "läuft gut.sqlite", "gemm")


def written(path: Path, *names: str) -> Path:
    export = Export()
    for number, name in enumerate(names):
        kernel(export, name, number * 100, number * 100 + 50, number + 1)
    path.unlink(missing_ok=True)
    return export.write(path)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(commands, [str(argument) for argument in arguments], catch_exceptions=False)


def names(path: Path) -> list[str]:
    with warplens.open(path) as report:
        found: list[str] = report.table("kernels").column("name").to_pylist()
        return found


def test_a_file_is_imported_once_and_again_when_it_changes(export: Path, cache: Path) -> None:
    assert names(export) == ["gemm"]
    first = list(cache.glob("*/*.warplens"))
    made = first[0].stat().st_mtime_ns
    assert names(export) == ["gemm"]
    assert (list(cache.glob("*/*.warplens")), first[0].stat().st_mtime_ns) == (first, made)
    assert cache.stat().st_mode & 0o77 == 0
    written(export, "gemm", "relu")
    assert names(export) == ["gemm", "relu"]
    assert len(list(cache.glob("*/*.warplens"))) == 2


def test_every_command_takes_such_a_file(export: Path, tmp_path: Path) -> None:
    first = call("stats", "-r", "cuda_gpu_kern_sum", export)
    assert first.exit_code == 0
    assert "gemm" in first.stdout
    assert "imported" in first.stderr
    again = call("query", export, "SELECT name FROM kernels")
    assert "gemm" in again.stdout
    assert again.stderr == ""
    assert call("info", export).exit_code == 0
    assert call("timeline", export).exit_code == 0
    assert call("export", export).exit_code == 0
    assert (tmp_path / "läuft gut.perfetto-trace").stat().st_size > 100


@pytest.mark.parametrize("words", [("stats",), ("export", "-f", "-o", "out.trace")])
def test_an_import_that_is_not_spoken_of(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loud, quiet = (
        call(*words, written(tmp_path / "a.sqlite", "a")),
        call(*words, "-q", written(tmp_path / "b.sqlite", "b")),
    )
    assert (loud.exit_code, quiet.exit_code, quiet.stderr) == (0, 0, "")
    assert "imported" in loud.stderr
    assert "imported" not in loud.stdout


def test_the_report_that_import_made_is_used(export: Path, cache: Path) -> None:
    done = call("import", export)
    assert done.exit_code == 0
    assert "1 kernel" in done.stdout
    assert names(export) == ["gemm"]
    assert not cache.exists()
    written(export, "relu")
    os.utime(export, (1, 1))
    assert names(export) == ["relu"]  # the report beside it is of the file as it was


def test_import_replaces_a_report_only_when_told_and_when_it_can(export: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    assert call("import", "-o", tmp_path / "r", export).exit_code == 0
    with pytest.raises(ReportError, match="exists already"):
        call("import", "-o", tmp_path / "r", export)
    assert (
        call("import", "-o", tmp_path / "r", "-f", written(tmp_path / "two.sqlite", "a", "b")).exit_code == 0
    )
    assert len(names(report)) == 2
    (tmp_path / "bad.sqlite").write_bytes(export.read_bytes()[:3000])
    with pytest.raises(ReportError, match="is truncated"):
        call("import", "-o", tmp_path / "r", "-f", tmp_path / "bad.sqlite")
    assert len(names(report)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bad.sqlite",
        "läuft gut.sqlite",
        "r.warplens",
        "two.sqlite",
    ]


def test_a_file_that_is_no_report_and_no_export_is_refused(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NotAReport, match=r"notes\.txt is a file, neither a report"):
        foreign.open(tmp_path / "notes.txt")
    (tmp_path / "run.nsys-rep").write_bytes(b"\0" * 100)
    with pytest.raises(NotAReport, match=r"nsys export -t sqlite .*run\.nsys-rep"):
        foreign.open(tmp_path / "run.nsys-rep")
    (tmp_path / "bad.sqlite").write_text("hello")
    with pytest.raises(NotAReport, match=r"bad\.sqlite is no SQLite file: it is text\.$"):
        foreign.open(tmp_path / "bad.sqlite")
    with pytest.raises(NotAReport, match="does not exist"):
        foreign.open(tmp_path / "nothing.sqlite")
    assert list(cache.glob("*")) == []


def test_a_cache_that_cannot_be_written_to(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    assert names(export) == ["gemm"]
    assert list((tmp_path / "tmp").glob("warplens-imports-*/*/läuft gut.warplens"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "file"))
    with pytest.raises(ReportError, match="cannot store imported files"):
        foreign.open(export)


def test_imports_that_nobody_used_for_long_make_room(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "_KEPT", 2)
    for number in range(4):
        names(written(tmp_path / f"{number}.sqlite", "k"))
        for folder in cache.iterdir():
            os.utime(folder, (time.time() - 10, time.time() - 10))
    assert len(list(cache.iterdir())) == 4  # all used today
    for folder in cache.iterdir():
        os.utime(folder, (1, 1))
    names(written(tmp_path / "new.sqlite", "k"))
    assert len(list(cache.iterdir())) == 2


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of imports in a temporary folder that everybody may write to, where there is no home."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"warplens-imports-{os.getuid()}"


def test_a_link_in_a_shared_folder_is_not_followed(shared: Path, tmp_path: Path, export: Path) -> None:
    mine = tmp_path / "mine"
    for number in range(25):
        (mine / f"folder {number}").mkdir(parents=True)
        os.utime(mine / f"folder {number}", (0, 0))
    mine.chmod(0o700)
    shared.symlink_to(mine)
    with pytest.raises(ReportError, match="not a writable folder that only you own"):
        names(export)
    assert len(list(mine.iterdir())) == 25


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_shared_folder_that_others_see_is_not_used(shared: Path, export: Path, mode: int) -> None:
    shared.mkdir()
    shared.chmod(mode)
    with pytest.raises(ReportError, match="not a writable folder that only you own"):
        names(export)


def test_only_imports_are_swept(cache: Path, export: Path) -> None:
    for number in range(20):
        (cache / f"{number:016x}" / "x.warplens").mkdir(parents=True)
        (cache / f"thesis {number}").mkdir()
        (cache / f"{number + 100:016x}").mkdir()
        (cache / f"{number + 100:016x}" / "thesis.txt").touch()
    (cache / f"{200:016x}").symlink_to(cache / "thesis 1")
    for entry in cache.iterdir():
        os.utime(entry, (0, 0), follow_symlinks=False)
    assert names(export) == ["gemm"]
    left = [entry.name for entry in cache.iterdir()]
    assert sum(name.startswith("thesis") for name in left) == 20
    assert all(f"{number + 100:016x}" in left for number in range(20))
    assert f"{200:016x}" in left
    assert sum(f"{number:016x}" in left for number in range(20)) == 15
