"""The directory in which sessions are found: ours alone, whoever took its name before."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from warplens.errors import CaptureError
from warplens.recording.session import runtime_dir as module
from warplens.recording.session.runtime_dir import OVERRIDE, RuntimeDir, runtime_dir, runtime_dirs


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory like /tmp, and nothing else to choose from."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    name = str(folder / f"warplens-{os.geteuid()}")
    monkeypatch.setattr(module, "_candidates", lambda environ: [(name, False)])
    return folder


def opened(environment: dict[str, str]) -> str:
    found = runtime_dir(environment)
    found.close()
    return found.path


def listed(environment: dict[str, str]) -> list[str]:
    found = runtime_dirs(environment)
    for directory in found:
        directory.close()
    return [directory.path for directory in found]


def test_the_directory_of_the_variable_is_created_private(tmp_path: Path) -> None:
    wanted = tmp_path / "sessions"
    assert opened({OVERRIDE: str(wanted)}) == str(wanted)
    assert stat.S_IMODE(wanted.stat().st_mode) == 0o700
    assert listed({OVERRIDE: str(wanted)}) == [str(wanted)]


def test_the_systems_runtime_directory_comes_first(tmp_path: Path) -> None:
    assert opened({"XDG_RUNTIME_DIR": str(tmp_path)}) == str(tmp_path / "warplens")
    assert str(tmp_path / "warplens") in listed({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_a_runtime_directory_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert not opened({"XDG_RUNTIME_DIR": str(tmp_path)}).startswith(str(tmp_path))


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(CaptureError, match="others may read or write it"):
        runtime_dir({OVERRIDE: str(tmp_path / "open")})
    assert listed({OVERRIDE: str(tmp_path / "open")}) == []


def test_a_link_is_refused_even_to_a_directory_of_ours(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(CaptureError, match="another user owns it"):
        runtime_dir({OVERRIDE: str(tmp_path / "link")})


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match=OVERRIDE):
        runtime_dir({OVERRIDE: str(tmp_path / "file")})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(CaptureError, match="another user owns it"):
        runtime_dir({OVERRIDE: str(tmp_path / "theirs")})
    assert listed({OVERRIDE: str(tmp_path / "theirs")}) == []


@pytest.mark.parametrize("squatter", ["file", "link", "open"])
def test_a_taken_name_leads_all_to_another(shared: Path, tmp_path: Path, squatter: str) -> None:
    name = shared / f"warplens-{os.geteuid()}"
    if squatter == "file":
        name.touch()
    elif squatter == "link":
        (tmp_path / "trap").mkdir()
        name.symlink_to(tmp_path / "trap")
    else:
        name.mkdir()
        name.chmod(0o777)
    first = opened({})
    assert first != str(name)
    assert first.startswith(str(name))
    assert opened({}) == first
    assert listed({}) == [first]


def test_a_directory_is_known_by_more_than_its_name(tmp_path: Path) -> None:
    found = runtime_dir({OVERRIDE: str(tmp_path / "sessions")})
    assert found.in_place()
    (tmp_path / "sessions").rename(tmp_path / "moved")
    assert not found.in_place()
    (tmp_path / "sessions").mkdir(mode=0o700)
    assert not found.in_place()
    found.close()


def test_addresses_are_short_however_long_the_path(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)
    found = runtime_dir({OVERRIDE: str(deep / "sessions")})
    (deep / "sessions" / "entry").write_text("here")
    address = found.address("entry")
    assert len(os.fsencode(address)) < 50
    assert Path(address).read_text() == "here"
    found.close()


def test_two_locks_exclude_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.05)
    held: list[RuntimeDir] = [runtime_dir({OVERRIDE: str(tmp_path / "s")}) for _ in range(2)]
    waits: list[float] = []
    monkeypatch.setattr("warplens.recording.session.runtime_dir.time.sleep", waits.append)
    with held[0].locked():
        assert not waits
        with held[
            1
        ].locked():  # after its patience has ended: a suspended process must not stop everybody for ever
            assert waits
    for directory in held:
        directory.close()
