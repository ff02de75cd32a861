"""After the program: errors keep its exit code, an interruption says that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpline.capture.launch import Outcome
from warpline.cli import finishing
from warpline.cli.finishing import finish_and_summarise, progress_bar
from warpline.errors import ReportError
from warpline.handover import pending


def _finish(tmp_path: Path, status: int, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(finishing, "finish", fail)
    note = pending.begin(tmp_path / "x.warpline", tmp_path / "x.warpline" / "spool" / "s")
    finish_and_summarise(note, Outcome(status, 0, 1, ()), quiet=False)


@pytest.mark.parametrize(("status", "code"), [(0, 1), (7, 7), (137, 137)])
def test_an_error_keeps_the_programs_exit_code(status: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReportError, match="no space") as caught:
        _finish(tmp_path, status, ReportError("no space"), monkeypatch)
    assert caught.value.exit_code == code


def test_an_interruption_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        _finish(tmp_path, 0, KeyboardInterrupt(), monkeypatch)
    assert "Nothing is lost: `warpline info x.warpline`" in capsys.readouterr().err


def test_there_is_no_bar_where_nobody_sees_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(finishing, "_PATIENCE_S", 0.0)
    with progress_bar() as progress:
        progress("decode", 0.5)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_bar_on_a_terminal_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    monkeypatch.setattr(finishing, "_PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar() as progress:
        progress("decode", 0.5)
        progress("write", 1.0)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "write" in captured.err
    assert captured.err.rstrip().endswith("\x1b[2K")
