"""Finding the program, with the exit codes of a shell."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from warplens.errors import NotStarted
from warplens.recording.launch.program import find_program


def _script(path: Path, mode: int = 0o755) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def _refused(name: str, path: str = "") -> NotStarted:
    with pytest.raises(NotStarted) as caught:
        find_program(name, {"PATH": path})
    return caught.value


def test_path_is_searched_in_order(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        _script(tmp_path / name / "prog")
    assert (
        find_program("prog", {"PATH": f"{tmp_path}/none:{tmp_path}/b:{tmp_path}/a"}) == f"{tmp_path}/b/prog"
    )


def test_a_file_that_cannot_run_does_not_hide_a_program(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "prog").mkdir()
    _script(tmp_path / "b" / "prog")
    assert find_program("prog", {"PATH": f"{tmp_path}/a:{tmp_path}/b"}) == f"{tmp_path}/b/prog"


def test_a_directory_of_path_that_may_not_be_entered_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b").mkdir()
    _script(tmp_path / "b" / "prog")
    stat = Path.stat

    def closed(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self.parent == tmp_path / "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", closed)
    assert find_program("prog", {"PATH": f"{tmp_path}/closed:{tmp_path}/b"}) == f"{tmp_path}/b/prog"
    assert _refused("other", f"{tmp_path}/closed:{tmp_path}/b").exit_code == 127


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    script = _script(tmp_path / "prog with space é")
    assert find_program(str(script), {}) == str(script)


def test_not_found() -> None:
    assert _refused("no-such-program", "/bin").exit_code == 127
    assert _refused("/no/such/program").exit_code == 127
    assert _refused("").exit_code == 127


def test_not_found_but_it_lies_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _script(tmp_path / "prog")
    assert "./prog" in str(_refused("prog", "/bin"))


def test_not_executable(tmp_path: Path) -> None:
    error = _refused(str(_script(tmp_path / "train.py", 0o644)))
    assert error.exit_code == 126
    assert "python" in str(error)
    assert _refused("train.py", str(tmp_path)).exit_code == 126
    assert "chmod" in str(_refused(str(_script(tmp_path / "prog", 0o644))))


def test_a_directory(tmp_path: Path) -> None:
    error = _refused(str(tmp_path))
    assert error.exit_code == 126
    assert "directory" in str(error)
