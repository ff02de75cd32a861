"""A folder that is open: nothing in it leads out of it, and what it writes is whole and private."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from warplens.disk import files
from warplens.disk.folder import Folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside, with a file that must stay as it is."""
    folder = tmp_path / "elsewhere"
    (folder / "deep").mkdir(parents=True)
    (folder / "thesis.txt").write_text("all of it")
    (folder / "deep" / "thesis.txt").write_text("all of it")
    return folder


@pytest.fixture
def linked(tmp_path: Path, elsewhere: Path) -> Path:
    """A folder with a link to the other one."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "link").symlink_to(elsewhere)
    (folder / "file").write_text("ours")
    return folder


def _all(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


STEPS: dict[str, Callable[[Folder], object]] = {
    "create": lambda folder: folder.create("link/new"),
    "create deep": lambda folder: folder.create("link/deep/new"),
    "create again": lambda folder: folder.create("link/thesis.txt", again=True),
    "update": lambda folder: folder.update("link/thesis.txt"),
    "write": lambda folder: folder.write("link/thesis.txt", b""),
    "rename into": lambda folder: folder.rename("file", "link/thesis.txt"),
    "rename out of": lambda folder: folder.rename("link/thesis.txt", "taken"),
    "create whole": lambda folder: folder.create_whole("link/new", b""),
    "move": lambda folder: folder.move("link/thesis.txt", folder, "taken"),
    "copy": lambda folder: folder.copy("link/thesis.txt", folder, "taken"),
    "read": lambda folder: folder.read("link/thesis.txt"),
    "remove": lambda folder: folder.remove("link/thesis.txt"),
    "remove tree": lambda folder: folder.remove_tree("link"),
    "folder": lambda folder: folder.folder("link"),
    "folder created": lambda folder: folder.folder("link", create=True),
    "names": lambda folder: folder.names("link"),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_no_link_is_followed(step: Callable[[Folder], object], linked: Path, elsewhere: Path) -> None:
    before = _all(elsewhere)
    with Folder(linked) as folder, pytest.raises(OSError, match=r"link") as error:
        step(folder)
    assert _all(elsewhere) == before
    assert str(linked / "link") in str(error.value)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "..", ".", "", "/x", "a//x"])
def test_no_name_leads_out(name: str, linked: Path) -> None:
    with Folder(linked) as folder, pytest.raises(ValueError, match=r"leads out|names no entry"):
        folder.write(name, b"")


def test_a_link_to_a_file_is_replaced_and_removed_itself(linked: Path, elsewhere: Path) -> None:
    before = _all(elsewhere)
    with Folder(linked) as folder:
        for name in ("written", "removed", "again"):
            (linked / name).symlink_to(elsewhere / "thesis.txt")
        folder.write("written", b"new")
        folder.create("again", again=True).close()
        folder.remove("removed")
        (linked / "updated").symlink_to(elsewhere / "thesis.txt")
        with pytest.raises(OSError, match=r"symbolic links"):
            folder.update("updated")
    assert _all(elsewhere) == before
    assert [(linked / name).is_symlink() for name in ("written", "removed", "again")] == [False] * 3


def test_a_tree_is_removed_and_its_links_only_themselves(linked: Path, elsewhere: Path) -> None:
    (linked / "deep" / "deeper").mkdir(parents=True)
    (linked / "deep" / "deeper" / "file").touch()
    before = _all(elsewhere)
    with Folder(linked.parent) as folder:
        folder.remove_tree("here")
    assert (linked.exists(), _all(elsewhere)) == (False, before)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(tmp_path / "x", "before")
    monkeypatch.setattr("os.rename", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        files.write(tmp_path / "x", "after")
    assert _all(tmp_path) == {"x": "before"}


@pytest.mark.parametrize("links", [True, False])
def test_of_many_that_make_a_file_one_does(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(
            "os.link", lambda *_, **__: os.open(tmp_path, os.O_WRONLY)
        )  # any error but that it is there
    with Folder(tmp_path) as folder:
        folder.create_whole("x", b"first")
        with pytest.raises(FileExistsError):
            folder.create_whole("x", b"second")
    assert _all(tmp_path) == {"x": "first"}


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Folder(tmp_path) as folder:
        for step in (folder.update, folder.read):
            with pytest.raises(OSError, match="not a regular file"):
                step("pipe")


def test_created_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Folder(tmp_path / "a", create=True) as folder:
            folder.write("b/c/file", "")
        with files.text_output(tmp_path / "asked for") as file:
            file.write("é\n")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"a": 0o700, "b": 0o700, "c": 0o700, "file": 0o600, "asked for": 0o666}


def test_a_file_moves_to_another_file_system_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(tmp_path / "x", b"1" * 3_000_000)
    rename = os.rename

    def refuse(old: str, new: str, **keywords: int) -> None:
        if old == "x":
            raise OSError(18, "Invalid cross-device link")
        rename(old, new, **keywords)

    monkeypatch.setattr("os.rename", refuse)
    with Folder(tmp_path) as source, Folder(tmp_path / "to", create=True) as target:
        source.move("x", target, "y")
    assert {name: len(text) for name, text in _all(tmp_path).items()} == {"to/y": 3_000_000}
